/*
 * The calls about time: what it is, how much of it was used, and waiting for it to pass.
 *
 * All of them count in nanoseconds of time_ns(). A sleep that a signal interrupts returns
 * -ERESTART_SLEEP; if the call is made again, it must not begin again from the start, so its
 * deadline is kept in the process (resume_ns):
 *
 *	nanosleep(10 s)	at 100 s: the deadline is 110 s
 *			at 103 s SIGSTOP, at 107 s SIGCONT: sleeps on, until 110 s
 */
#include "kernel/process/syscall_clock.h"

#include <stddef.h>

#include "kernel/abi/time.h"
#include "kernel/lib/divide.h"
#include "kernel/lib/errno.h"
#include "kernel/process/signal.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/user_time.h"
#include "kernel/task/time.h"
#include "kernel/task/timer.h"
#include "kernel/task/wait.h"
#include "mm/user_copy.h"

#define NS	    NANOSECONDS_PER_SECOND
#define NS_PER_TICK (NS / TICKS_PER_SECOND)

/* ---- clocks ---- */

/* One clock for the time of day, one that only runs, one for the processor time of this task. */
int clock_read(uint32_t clock, uint64_t *ns)
{
	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_TAI:
		*ns = time_wall_ns();
		return 0;
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_BOOTTIME:
		*ns = time_ns();
		return 0;
	case CLOCK_PROCESS_CPUTIME_ID:
	case CLOCK_THREAD_CPUTIME_ID:
		*ns = time_of_stamps(current->schedule.total);
		return 0;
	default:
		return -EINVAL;
	}
}

/* As struct timespec, where the program wants it. Returns 0 or -EFAULT. */
static int give_time(uint32_t address, uint64_t ns)
{
	const struct linux_timespec time = timespec_of(ns);

	return give(address, &time, sizeof(time));
}

static int sys_clock_gettime(struct trap_frame *frame)
{
	uint64_t ns;
	int error = clock_read(frame->ebx, &ns);

	return error ? error : give_time(frame->ecx, ns);
}

/* times(2) counts ticks, and returns the ticks since boot. */
static int sys_times(struct trap_frame *frame)
{
	const struct process *process = current->process;
	const struct linux_times times = { current->user_ticks, current->system_ticks,
					   process->children_user_ticks,
					   process->children_system_ticks };

	if (frame->ebx && give(frame->ebx, &times, sizeof(times)) != 0)
		return -EFAULT;
	return (uint32_t)divide64(time_ns(), NS_PER_TICK, NULL) & 0x7fffffff;
}

/* ---- sleeping ---- */

/* In no queue: only a signal or the deadline ends this. */
int sleep_until(uint64_t deadline)
{
	int result;

	while ((result = wait_any(NULL, 0, deadline)) == 0)
		;
	return result == -ERESTART ? -ERESTART_SLEEP : 0;
}

/* If a signal has interrupted it and the call begins again, the deadline of the first time counts.
 */
int sleep_for(uint64_t ns, uint64_t *left)
{
	uint64_t deadline = current->process->signals.resume_ns;

	if (deadline == 0)
		deadline = time_ns() + ns;
	int result = sleep_until(deadline);
	uint64_t now = time_ns();

	current->process->signals.resume_ns = result ? deadline : 0;
	*left = deadline > now ? deadline - now : 0;
	return result;
}

/* A rest that could not be told is an error: then the call does not begin again. */
static int sys_nanosleep(struct trap_frame *frame)
{
	uint64_t ns, left;
	int result = timespec_from_user(frame->ebx, &ns);

	if (result)
		return result;
	result = sleep_for(ns, &left);
	if (!result || !frame->ecx || give_time(frame->ecx, left) == 0)
		return result;
	current->process->signals.resume_ns = 0;
	return -EFAULT;
}

/* ---- alarms ---- */

/* In the tick's interrupt. A timer that was late does not ring more than once for it. */
static void ring(struct timer *timer)
{
	struct process *process = list_entry((char *)timer, struct process, alarm);
	uint64_t now = time_ns(), next = timer->deadline + process->alarm_interval;

	signal_send(process, SIGALRM);
	if (process->alarm_interval)
		timer_start(timer, next > now ? next : now + process->alarm_interval, ring);
}

/* 0: none is set; an alarm that is due at this moment counts as one nanosecond. */
uint64_t alarm_left(void)
{
	const struct timer *alarm = &current->process->alarm;
	uint64_t now = time_ns();

	if (!timer_is_running(alarm))
		return 0;
	return alarm->deadline > now ? alarm->deadline - now : 1;
}

/* 0 ns only cancels. */
void alarm_set(uint64_t ns, uint64_t interval)
{
	struct process *process = current->process;

	timer_cancel(&process->alarm);
	process->alarm_interval = interval;
	if (ns)
		timer_start(&process->alarm, time_ns() + ns, ring);
}

/* Returns the seconds that were left, rounded; never 0 for an alarm that was set. */
static int sys_alarm(struct trap_frame *frame)
{
	uint32_t rest;
	uint64_t left = divide64(alarm_left(), NS, &rest);

	alarm_set((uint64_t)frame->ebx * NS, 0);
	return left + (rest >= NS / 2 || (rest && left == 0));
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 27, "alarm", "d", sys_alarm },
	{ 43, "times", "p", sys_times },
	{ 162, "nanosleep", "pp", sys_nanosleep },
	{ 265, "clock_gettime", "dp", sys_clock_gettime },
};
