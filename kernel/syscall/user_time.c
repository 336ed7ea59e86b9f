/* Times that programs give, made nanoseconds, and the way back. */
#include "kernel/syscall/user_time.h"

#include "kernel/lib/divide.h"
#include "kernel/lib/errno.h"
#include "mm/user_copy.h"

#define NS		NANOSECONDS_PER_SECOND
#define LONGEST_SECONDS 0x7fffffff

int timespec_ns(const struct linux_timespec64 *time, uint64_t *ns)
{
	if (time->seconds < 0 || time->nanoseconds < 0 || time->nanoseconds >= NS)
		return -EINVAL;
	int64_t seconds = time->seconds < LONGEST_SECONDS ? time->seconds : LONGEST_SECONDS;

	*ns = (uint64_t)seconds * NS + time->nanoseconds;
	return 0;
}

int timespec_from_user(uint32_t address, uint64_t *ns)
{
	struct linux_timespec old;

	if (copy_from_user(&old, address, sizeof(old)) != 0)
		return -EFAULT;
	const struct linux_timespec64 time = { old.seconds, old.nanoseconds };

	return timespec_ns(&time, ns);
}

int timespec64_from_user(uint32_t address, uint64_t *ns)
{
	struct linux_timespec64 time;

	if (copy_from_user(&time, address, sizeof(time)) != 0)
		return -EFAULT;
	time.nanoseconds &= 0xffffffff; /* programs may leave anything in the upper half */
	return timespec_ns(&time, ns);
}

struct linux_timespec64 timespec64_of(uint64_t ns)
{
	uint32_t rest;
	uint64_t seconds = divide64(ns, NS, &rest);

	return (struct linux_timespec64){ seconds, rest };
}

struct linux_timespec timespec_of(uint64_t ns)
{
	const struct linux_timespec64 time = timespec64_of(ns);

	return (struct linux_timespec){ time.seconds, time.nanoseconds };
}
