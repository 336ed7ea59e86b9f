/* Conversion of the times that programs pass to nanoseconds, and back. In a valid time the
 * nanoseconds are less than a second, and the seconds are not negative. */
#pragma once

#include "kernel/abi/time.h"
#include "kernel/lib/divide.h"
#include "mm/user_copy.h"

/* Nanoseconds of the structure at a user address. Returns 0, -EFAULT, or -EINVAL if it is not
 * a valid time. */
typedef int timespec_reader(uint32_t address, uint64_t *ns);

static inline int timespec_from_user(uint32_t address, uint64_t *ns)
{
	struct linux_timespec time;

	if (copy_from_user(&time, address, sizeof(time)) != 0)
		return -EFAULT;
	if (time.seconds < 0 || time.nanoseconds < 0 ||
	    time.nanoseconds >= (int32_t)NANOSECONDS_PER_SECOND)
		return -EINVAL;
	*ns = (uint64_t)time.seconds * NANOSECONDS_PER_SECOND + time.nanoseconds;
	return 0;
}

/* Back to a structure. */
static inline struct linux_timespec timespec_of(uint64_t ns)
{
	uint32_t rest;
	uint32_t seconds = divide64(ns, NANOSECONDS_PER_SECOND, &rest);

	return (struct linux_timespec){ seconds, rest };
}
