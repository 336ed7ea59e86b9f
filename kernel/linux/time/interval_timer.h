/* Timers that come again and again: timerfd_create(2) and timer_create(2) have them. */
#pragma once

#include "kernel/linux/time/user_time64.h"
#include "kernel/task/timer.h"

struct interval_timer {
	struct timer timer; /* first: the two have one address */
	uint64_t interval;  /* nanoseconds until it comes again; 0: it does not */
	bool is_of_the_day; /* absolute times are CLOCK_REALTIME's, not CLOCK_MONOTONIC's */
};

/* May a program have a timer of this clock? */
bool interval_timer_has_clock(uint32_t clock);

/* Writes the interval, and how long until it comes, 0 if it does not run. Returns 0 or -EFAULT. */
int interval_timer_give(const struct interval_timer *timer, uint32_t address,
			enum time_format format);

/* Starts it again: value from now on, or at this time of its clock. No interval is shorter than a
 * tick. A value of 0 stops it. */
void interval_timer_set(struct interval_timer *timer, const struct timer_setting *setting,
			bool is_absolute, void (*expire)(struct timer *timer));

/* Deletes the timers of timer_create that the current task's program has. */
void signal_timers_delete(void);

/* For expire: it comes again, if it has an interval. A late one catches up, one time each tick. */
void interval_timer_again(struct interval_timer *timer);
