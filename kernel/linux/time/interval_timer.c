/* Timers that come again and again, and how programs set them. */
#include "kernel/linux/time/interval_timer.h"

#include "fs/vfs/wall_time.h"
#include "kernel/cpu/interrupts.h"
#include "kernel/linux/time/user_time64.h"
#include "kernel/task/time.h"
#include "mm/user_copy.h"

#define SHORTEST_NS 10000000u

bool interval_timer_has_clock(uint32_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME;
}

int timer_setting_from_user(uint32_t address, bool wide, struct timer_setting *setting)
{
	timespec_reader *read = wide ? timespec64_from_user : timespec_from_user;
	uint32_t size = wide ? sizeof(struct linux_timespec64) : sizeof(struct linux_timespec);
	int error = read(address, &setting->interval);

	return error ? error : read(address + size, &setting->value);
}

int interval_timer_give(const struct interval_timer *timer, uint32_t address, bool wide)
{
	uint64_t now = time_ns(), left = 0;

	if (timer_is_running(&timer->timer))
		left = timer->timer.deadline > now ? timer->timer.deadline - now : 1;
	struct linux_timespec64 both64[] = { timespec64_of(timer->interval), timespec64_of(left) };
	struct linux_timespec both[] = { timespec_of(timer->interval), timespec_of(left) };

	return wide ? give(address, both64, sizeof(both64)) : give(address, both, sizeof(both));
}

/* A time of the clock as one of time_ns(); what has passed is now. */
static uint64_t deadline_of(const struct interval_timer *timer, uint64_t time)
{
	uint64_t now = time_ns(), clock = timer->is_of_the_day ? time_wall_ns() : now;

	return time > clock ? now + (time - clock) : now;
}

void interval_timer_set(struct interval_timer *timer, const struct timer_setting *setting,
			bool is_absolute, void (*expire)(struct timer *timer))
{
	uint64_t value = setting->value, interval = setting->interval;
	bool enabled = interrupts_disable();

	timer_cancel(&timer->timer);
	timer->interval = interval && interval < SHORTEST_NS ? SHORTEST_NS : interval;
	if (value)
		timer_start(&timer->timer,
			    is_absolute ? deadline_of(timer, value) : time_ns() + value, expire);
	interrupts_restore(enabled);
}

void interval_timer_again(struct interval_timer *timer)
{
	if (timer->interval)
		timer_start(&timer->timer, timer->timer.deadline + timer->interval,
			    timer->timer.expire);
}
