/*
 * The calls about time: reading the clock, the processor time used, sleeping, and alarms.
 *
 * All of them count in nanoseconds of time_ns(), which begins when the kernel does. A sleep that a
 * signal interrupts returns -ERESTART: if the signal does not end the program, the call is made
 * again (kernel/process/signal_deliver.c).
 *
 * An alarm is a timer in the process. It expires in the tick's interrupt, and only sends SIGALRM.
 */

#include "kernel/process/signal.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/user_time.h"
#include "kernel/task/time.h"

#define NS	    NANOSECONDS_PER_SECOND
#define NS_PER_TICK (NS / TICKS_PER_SECOND)

/* There is one clock, and it cannot be set. */
static int sys_clock_gettime(struct trap_frame *frame)
{
	const struct linux_timespec now = timespec_of(time_ns());

	return frame->ebx == CLOCK_MONOTONIC ? give(frame->ecx, &now, sizeof(now)) : -EINVAL;
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

/* In no queue: only a signal or the deadline ends this. */
static int sys_nanosleep(struct trap_frame *frame)
{
	uint64_t ns;
	int result = timespec_from_user(frame->ebx, &ns);
	uint64_t deadline = time_ns() + ns;

	while (result == 0)
		result = wait_any(NULL, 0, deadline);
	return result == -ETIMEDOUT ? 0 : result;
}

static void ring(struct timer *timer)
{
	signal_send(list_entry((char *)timer, struct process, alarm), SIGALRM);
}

/* Returns the seconds that were left, rounded; never 0 for an alarm that was set. */
static int sys_alarm(struct trap_frame *frame)
{
	struct timer *alarm = &current->process->alarm;
	uint64_t now = time_ns();
	uint32_t rest = 0, left = 0;

	if (timer_is_running(alarm) && alarm->deadline > now)
		left = divide64(alarm->deadline - now, NS, &rest);
	timer_cancel(alarm);
	if (frame->ebx)
		timer_start(alarm, now + (uint64_t)frame->ebx * NS, ring);
	return left + (rest >= NS / 2 || (rest && left == 0));
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 27, "alarm", "d", sys_alarm },
	{ 43, "times", "p", sys_times },
	{ 162, "nanosleep", "pp", sys_nanosleep },
	{ 265, "clock_gettime", "dp", sys_clock_gettime },
};
