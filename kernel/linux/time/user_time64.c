/* Times of 64 bits, of 32 bits, and of microseconds, between programs and the kernel. */
#include "kernel/linux/time/user_time64.h"

#include "kernel/lib/errno.h"

#define NS		NANOSECONDS_PER_SECOND
#define LONGEST_SECONDS 0x7fffffff

int time_load(uint32_t address, enum time_format format, struct linux_timespec64 *time)
{
	int32_t narrow[2];

	if (format == TIMESPEC64) {
		uint32_t left = copy_from_user(time, address, sizeof(*time));

		time->nanoseconds &= 0xffffffff; /* there may be anything in the upper half */
		return left ? -EFAULT : 0;
	}
	if (copy_from_user(narrow, address, sizeof(narrow)) != 0)
		return -EFAULT;
	*time = (struct linux_timespec64){ narrow[0], narrow[1] };
	if (format == TIMEVAL)
		time->nanoseconds *= 1000;
	return 0;
}

int timespec64_ns(const struct linux_timespec64 *time, uint64_t *ns)
{
	if (time->seconds < 0 || time->nanoseconds < 0 || time->nanoseconds >= NS)
		return -EINVAL;
	int64_t seconds = time->seconds < LONGEST_SECONDS ? time->seconds : LONGEST_SECONDS;

	*ns = (uint64_t)seconds * NS + time->nanoseconds;
	return 0;
}

/* The short ones need less arithmetic. */
int time_from_user(uint32_t address, enum time_format format, uint64_t *ns)
{
	struct linux_timespec64 wide;
	struct linux_timespec time;

	if (format == TIMESPEC64)
		return time_load(address, format, &wide) ?: timespec64_ns(&wide, ns);
	if (copy_from_user(&time, address, sizeof(time)) != 0)
		return -EFAULT;
	if (format == TIMEVAL && (uint32_t)time.nanoseconds < NS / 1000)
		time.nanoseconds *= 1000;
	else if (format == TIMEVAL)
		return -EINVAL;
	if (time.seconds < 0 || (uint32_t)time.nanoseconds >= NS)
		return -EINVAL;
	*ns = (uint64_t)time.seconds * NS + time.nanoseconds;
	return 0;
}

struct linux_timespec64 timespec64_of(uint64_t ns)
{
	uint32_t rest;
	uint64_t seconds = divide64(ns, NS, &rest);

	return (struct linux_timespec64){ seconds, rest };
}

/* ---- pairs ---- */

/* Where the second time of a pair is. */
static uint32_t second_of(uint32_t address, enum time_format format)
{
	return address + (format == TIMESPEC64 ? sizeof(struct linux_timespec64)
					       : sizeof(struct linux_timespec));
}

int timer_setting_from_user(uint32_t address, enum time_format format,
			    struct timer_setting *setting)
{
	return time_from_user(address, format, &setting->interval)
		   ?: time_from_user(second_of(address, format), format, &setting->value);
}

int timer_setting_to_user(uint32_t address, enum time_format format,
			  const struct timer_setting *setting)
{
	return time_to_user(address, format, setting->interval)
		   ?: time_to_user(second_of(address, format), format, setting->value);
}
