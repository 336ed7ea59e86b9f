/* Times that programs give, and get. */
#pragma once

#include <stdint.h>

#include "kernel/abi/time.h"

/* Nanoseconds of the struct timespec at a user address. Returns 0, -EFAULT, or -EINVAL for what is
 * no time. */
typedef int timespec_reader(uint32_t address, uint64_t *ns);
timespec_reader timespec_from_user;

/* The way back. */
struct linux_timespec timespec_of(uint64_t ns);
