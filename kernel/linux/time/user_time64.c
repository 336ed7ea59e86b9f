/*
 * Times in all formats that programs have, to and from nanoseconds of 64 bits.
 *
 * A time is copied as words; what they mean depends on the format. 2^64 ns are 584 years, so the
 * time since the start and LONGEST_SECONDS, which are 68 years, can be added.
 */
#include "kernel/linux/time/user_time64.h"

#include "kernel/linux/call.h"
#include "kernel/task/time.h"

#define LONGEST_SECONDS 0x7fffffff
#define WORDS_MOST	8u /* of two times */

/* In bytes, by the format: what a copy moves, and where the second of two begins. */
static uint32_t size_of_time(enum time_format format)
{
	static const uint8_t sizes[] = { 4, 8, 8, 16 };

	return sizes[format];
}

/* There may be anything in the upper half of the nanoseconds. */
static struct linux_timespec64 time_of_words(const uint32_t *words, enum time_format format)
{
	if (format == TIMESPEC64)
		return (struct linux_timespec64){ (int64_t)words[1] << 32 | words[0], words[2] };
	uint64_t rest = format == SECONDS ? 0 : words[1];

	return (struct linux_timespec64){ (int32_t)words[0],
					  format == TIMEVAL ? rest * 1000 : rest };
}

/* Fetches both at once, so a bad pointer is told before a bad time. */
int times_load(uint32_t address, enum time_format format, struct linux_timespec64 *times,
	       uint32_t count)
{
	uint32_t words[WORDS_MOST], size = size_of_time(format);

	if (copy_from_user(words, address, count * size) != 0)
		return -EFAULT;
	for (uint32_t i = 0; i < count; i++)
		times[i] = time_of_words(&words[i * size / sizeof(*words)], format);
	return 0;
}

/* More than LONGEST_SECONDS is as good as that: no wait lasts so long. -EINVAL unless 0 <=
 * nanoseconds < a second and the seconds are not negative. */
static int ns_of_time(const struct linux_timespec64 *time, uint64_t *ns)
{
	uint64_t seconds = time->seconds < LONGEST_SECONDS ? time->seconds : LONGEST_SECONDS;

	if (time->seconds < 0 || (uint64_t)time->nanoseconds >= NS)
		return -EINVAL;
	*ns = seconds * NS + time->nanoseconds;
	return 0;
}

int time_from_user(uint32_t address, enum time_format format, uint64_t *ns)
{
	struct linux_timespec64 time;

	return time_load(address, format, &time) ?: ns_of_time(&time, ns);
}

/* select's microseconds may be more than a second, which ns_of_time would refuse. */
int deadline_from_user(uint32_t address, enum time_format format, uint64_t *deadline)
{
	struct linux_timespec64 time;
	uint64_t ns = 0;

	*deadline = WAIT_FOREVER;
	if (!address)
		return 0;
	int error = time_load(address, format, &time);

	if (!error && format == TIMEVAL) {
		ns = time.seconds * NS + time.nanoseconds;
		error = time.seconds < 0 || time.nanoseconds > INT32_MAX * 1000ll ? -EINVAL : 0;
	} else if (!error) {
		error = ns_of_time(&time, &ns);
	}
	if (!error)
		*deadline = ns ? time_ns() + ns : 0;
	return error;
}

/* The rest of the division is less than a second, so it is valid as nanoseconds. */
struct linux_timespec64 timespec64_of(uint64_t ns)
{
	uint32_t rest;
	uint64_t seconds = divide64(ns, NS, &rest);

	return (struct linux_timespec64){ seconds, rest };
}

/* ---- pairs ---- */

/* The interval is checked as the value is, also where a value of 0 stops the timer:
 * timer_settime(2), -EINVAL. */
int timer_setting_from_user(uint32_t address, enum time_format format,
			    struct timer_setting *setting)
{
	struct linux_timespec64 both[2];

	return times_load(address, format, both, 2) ?: ns_of_time(&both[0], &setting->interval)
		   ?: ns_of_time(&both[1], &setting->value);
}

int timer_setting_to_user(uint32_t address, enum time_format format,
			  const struct timer_setting *setting)
{
	return time_to_user(address, format, setting->interval)
		   ?: time_to_user(address + size_of_time(format), format, setting->value);
}
