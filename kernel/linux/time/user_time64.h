/* Times of 64 bits, which newer calls have. */
#pragma once

#include "kernel/abi/clocks.h"
#include "kernel/syscall/user_time.h"

/* Nanoseconds of a time; -EINVAL if out of range. More than 68 years count as 68 years. */
int timespec64_ns(const struct linux_timespec64 *time, uint64_t *ns);

/* The same of one at a user address, and the way back. */
timespec_reader timespec64_from_user;
struct linux_timespec64 timespec64_of(uint64_t ns);
