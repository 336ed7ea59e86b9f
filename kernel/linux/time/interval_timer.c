/* Timers that come again and again, on kernel/task/timer.h: the interval, and the clocks they go
 * by. Setting CLOCK_REALTIME does not move a timer that runs: it counts on as time_ns() does, and
 * Linux's TFD_TIMER_CANCEL_ON_SET is refused. */
#include "kernel/linux/time/interval_timer.h"

#include "fs/vfs/wall_time.h"
#include "kernel/linux/call.h"
#include "kernel/task/time.h"

/* A tick: what the clock cannot tell apart would only make the timer's handler busy. */
#define SHORTEST_NS 10000000u

bool interval_timer_has_clock(uint32_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME;
}

/* What is due and has not come yet has a nanosecond left, because 0 means that it is stopped. */
int interval_timer_give(const struct interval_timer *timer, uint32_t address,
			enum time_format format)
{
	struct timer_setting setting = { timer->interval, 0 };
	uint64_t now = time_ns();

	if (timer_is_running(&timer->timer))
		setting.value = timer->timer.deadline > now ? timer->timer.deadline - now : 1;
	return timer_setting_to_user(address, format, &setting);
}

/* A time of the clock as one of time_ns(); what has passed is now. */
static uint64_t deadline_of(const struct interval_timer *timer, uint64_t time)
{
	uint64_t now = time_ns(), clock = timer->is_of_the_day ? time_wall_ns() : now;

	return time > clock ? now + (time - clock) : now;
}

/* The tick may not see a timer that is half set. */
void interval_timer_set(struct interval_timer *timer, const struct timer_setting *setting,
			bool is_absolute, void (*expire)(struct timer *timer))
{
	uint64_t value = setting->value, interval = setting->interval;
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();

	timer_cancel(&timer->timer);
	timer->interval = interval && interval < SHORTEST_NS ? SHORTEST_NS : interval;
	if (value)
		timer_start(&timer->timer,
			    is_absolute ? deadline_of(timer, value) : time_ns() + value, expire);
}

/* From the deadline on, not from now: an interval does not drift. */
void interval_timer_again(struct interval_timer *timer)
{
	if (timer->interval)
		timer_start(&timer->timer, timer->timer.deadline + timer->interval,
			    timer->timer.expire);
}
