/* Times of 64 bits, which newer calls have. */
#pragma once

#include "kernel/abi/clocks.h"
#include "kernel/syscall/user_time.h"

/* Nanoseconds of a time; -EINVAL for what is none. More than 68 years are as good as for ever. */
int timespec64_ns(const struct linux_timespec64 *time, uint64_t *ns);

/* The same of one at a user address, and the way back. */
timespec_reader timespec64_from_user;
struct linux_timespec64 timespec64_of(uint64_t ns);
