/* Times of 64 bits: kernel/syscall/user_time.h for newer programs. */
#include "kernel/linux/time/user_time64.h"

#include "kernel/lib/divide.h"
#include "kernel/lib/errno.h"
#include "mm/user_copy.h"

#define NS		NANOSECONDS_PER_SECOND
#define LONGEST_SECONDS 0x7fffffff

int timespec64_ns(const struct linux_timespec64 *time, uint64_t *ns)
{
	if (time->seconds < 0 || time->nanoseconds < 0 || time->nanoseconds >= NS)
		return -EINVAL;
	int64_t seconds = time->seconds < LONGEST_SECONDS ? time->seconds : LONGEST_SECONDS;

	*ns = (uint64_t)seconds * NS + time->nanoseconds;
	return 0;
}

int timespec64_from_user(uint32_t address, uint64_t *ns)
{
	struct linux_timespec64 time;

	if (copy_from_user(&time, address, sizeof(time)) != 0)
		return -EFAULT;
	time.nanoseconds &= 0xffffffff; /* programs may leave anything in the upper half */
	return timespec64_ns(&time, ns);
}

struct linux_timespec64 timespec64_of(uint64_t ns)
{
	uint32_t rest;
	uint64_t seconds = divide64(ns, NS, &rest);

	return (struct linux_timespec64){ seconds, rest };
}
