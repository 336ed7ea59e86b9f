/* Times that programs give, and get. */
#pragma once

#include <stdint.h>

#include "kernel/abi/time.h"

/* Nanoseconds of a time; -EINVAL for what is none. More than 68 years are as good as for ever. */
int timespec_ns(const struct linux_timespec64 *time, uint64_t *ns);

/* The same of a struct timespec, or of one of 64 bits, at an address of ring 3. -EFAULT. */
typedef int timespec_reader(uint32_t address, uint64_t *ns);
timespec_reader timespec_from_user, timespec64_from_user;

/* The way back. */
struct linux_timespec64 timespec64_of(uint64_t ns);
struct linux_timespec timespec_of(uint64_t ns);
