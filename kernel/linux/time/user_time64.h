/*
 * Times as programs have them in memory. Most calls with a time exist twice, with one of 32 and one
 * of 64 bits (their names end in 64), and older ones count microseconds: the format says which.
 *
 *	format		bytes	call
 *	SECONDS		4	stime, utime
 *	TIMEVAL		4 + 4	settimeofday, utimes, select
 *	TIMESPEC	4 + 4	clock_settime, utimensat, ppoll
 *	TIMESPEC64	8 + 8	clock_settime64, utimensat_time64, ppoll_time64
 *
 * All functions return 0 or a negated errno, and sleep in the copy. kernel/syscall/user_time.h is
 * the same for the calls of lesson 3.
 */
#pragma once

#include "kernel/abi/clocks.h"
#include "kernel/cpu/trap.h"
#include "kernel/syscall/user_time.h"

enum time_format { SECONDS, TIMEVAL, TIMESPEC, TIMESPEC64 };

#define NS	     NANOSECONDS_PER_SECOND
#define FIRST_TIME64 403u /* Linux 5.1 gave those with 64 bits their numbers together */

/* TIMESPEC or TIMESPEC64, by the number of the call: so both are one function (SYSCALL_PAIR). */
static inline enum time_format format_of_call(const struct trap_frame *frame)
{
	return frame->eax < FIRST_TIME64 ? TIMESPEC : TIMESPEC64;
}

/* Reads one or two times as they are, one after the other, in seconds and nanoseconds, valid or
 * not. -EFAULT. What is negative in place of nanoseconds is more than any number of them. */
int times_load(uint32_t address, enum time_format format, struct linux_timespec64 *times,
	       uint32_t count);

static inline int time_load(uint32_t address, enum time_format format,
			    struct linux_timespec64 *time)
{
	return times_load(address, format, time, 1);
}

/* Nanoseconds of a time; -EFAULT, or -EINVAL unless 0 <= nanoseconds < a second and the seconds are
 * not negative. More than 68 years count as 68 years. */
int time_from_user(uint32_t address, enum time_format format, uint64_t *ns);

/* When a wait ends that lasts as long as an address says, in ns of time_ns(): WAIT_FOREVER at
 * address 0; 0 for no time, which is not even until the next tick. select(2) takes any number of
 * microseconds that is not negative. */
int deadline_from_user(uint32_t address, enum time_format format, uint64_t *deadline);

/* The way back: to a structure; and to a program, -EFAULT. */
struct linux_timespec64 timespec64_of(uint64_t ns);

static inline int time_to_user(uint32_t address, enum time_format format, uint64_t ns)
{
	if (format == TIMESPEC64) {
		const struct linux_timespec64 wide = timespec64_of(ns);

		return give(address, &wide, sizeof(wide));
	}
	struct linux_timespec time = timespec_of(ns);

	if (format == TIMEVAL)
		time.nanoseconds = (uint32_t)time.nanoseconds / 1000;
	return give(address, &time, sizeof(time));
}

/* What a timer is set to, in nanoseconds: programs have the two one after the other, in this order
 * (struct itimerspec, struct itimerval). */
struct timer_setting {
	uint64_t interval, value;
};

int timer_setting_from_user(uint32_t address, enum time_format format,
			    struct timer_setting *setting);
int timer_setting_to_user(uint32_t address, enum time_format format,
			  const struct timer_setting *setting);
