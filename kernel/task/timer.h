/* Timers: functions that are called at a given time. The tick checks them, so they are late by up
 * to one tick. */
#pragma once

#include <stdint.h>

#include "kernel/lib/list.h"

struct timer {
	struct list in_order; /* linked while it runs: next is not NULL */
	uint64_t deadline;    /* time_ns() */
	void (*expire)(struct timer *timer);
};

/* Starts a timer that does not run: expire(timer) is called once, at deadline or soon after, with
 * interrupts disabled, from the tick. Timers with equal deadlines expire in the order in which they
 * were started. A deadline that has passed expires at the next tick, even if expire itself starts
 * the timer again. From any context. */
void timer_start(struct timer *timer, uint64_t deadline_ns, void (*expire)(struct timer *timer));

/* Stops a timer; one that does not run is left as it is. From any context. */
void timer_cancel(struct timer *timer);

/* Is it running, that is: will expire still be called? */
static inline bool timer_is_running(const struct timer *timer)
{
	return timer->in_order.next != NULL;
}

/* Calls the functions of all timers that are due at now_ns. The tick calls it, with interrupts
 * disabled.
 */
void timers_expire(uint64_t now_ns);
