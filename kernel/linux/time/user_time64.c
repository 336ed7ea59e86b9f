/*
 * Times in all formats that programs have, to and from nanoseconds of 64 bits.
 *
 * A time is copied as words; what they mean depends on the format. 2^64 ns are 584 years, so the
 * time since the start and LONGEST_SECONDS, which are 68 years, can be added.
 */
#include "kernel/linux/time/user_time64.h"

#include "kernel/task/time.h"
#include "kernel/task/wait.h"
#define NS		NANOSECONDS_PER_SECOND
#define LONGEST_SECONDS 0x7fffffff

/* In bytes, by the format: what a copy moves, and where the second of two begins. */
static uint32_t size_of_time(enum time_format format)
{
	static const uint8_t sizes[] = { 4, 8, 8, 16 };

	return sizes[format];
}

/* Seconds of 32 bits are signed, as time_t is; microseconds become nanoseconds. */
int time_load(uint32_t address, enum time_format format, struct linux_timespec64 *time)
{
	uint32_t words[4] = { 0 };

	if (copy_from_user(words, address, size_of_time(format)) != 0)
		return -EFAULT;
	if (format == TIMESPEC64) /* there may be anything in the upper half of the nanoseconds */
		*time = (struct linux_timespec64){ (int64_t)words[1] << 32 | words[0], words[2] };
	else
		*time = (struct linux_timespec64){ (int32_t)words[0], words[1] };
	if (format == TIMEVAL)
		time->nanoseconds *= 1000;
	return 0;
}

int times_load(uint32_t address, enum time_format format, struct linux_timespec64 both[2])
{
	return time_load(address, format, &both[0])
		   ?: time_load(address + size_of_time(format), format, &both[1]);
}

/* More than LONGEST_SECONDS is as good as that: no wait lasts so long. */
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

/* select's microseconds may be more than a second: they are added, and time_from_user would refuse
 * them. */
int deadline_from_user(uint32_t address, enum time_format format, uint64_t *deadline)
{
	struct linux_timespec64 time;
	uint64_t ns, more = 0;
	int error;

	*deadline = WAIT_FOREVER;
	if (!address)
		return 0;
	if (format == TIMEVAL) {
		error = time_load(address, format, &time);
		if (!error && time.nanoseconds <= INT32_MAX * 1000ll) {
			more = time.nanoseconds;
			time.nanoseconds = 0;
		}
		error = error ?: timespec64_ns(&time, &ns);
	} else {
		error = time_from_user(address, format, &ns);
	}
	if (!error)
		*deadline = ns + more ? time_ns() + ns + more : 0;
	return error;
}

struct linux_timespec64 timespec64_of(uint64_t ns)
{
	uint32_t rest;
	uint64_t seconds = divide64(ns, NS, &rest);

	return (struct linux_timespec64){ seconds, rest };
}

/* ---- pairs ---- */

int timer_setting_from_user(uint32_t address, enum time_format format,
			    struct timer_setting *setting)
{
	return time_from_user(address, format, &setting->interval)
		   ?: time_from_user(address + size_of_time(format), format, &setting->value);
}

int timer_setting_to_user(uint32_t address, enum time_format format,
			  const struct timer_setting *setting)
{
	return time_to_user(address, format, setting->interval)
		   ?: time_to_user(address + size_of_time(format), format, setting->value);
}
