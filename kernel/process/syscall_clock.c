/*
 * The calls about time: reading the clock, the processor time used, sleeping, and alarms.
 *
 * All of them count in nanoseconds of time_ns(), which begins when the kernel does. A sleep that a
 * signal interrupts returns -ERESTART_SLEEP: if the signal does not end the program, the call is
 * made again (kernel/process/signal_deliver.c). It must not begin again from the start, so its
 * deadline is kept in the process (resume_ns):
 *
 *	nanosleep(10 s)	at 100 s: the deadline is 110 s
 *			at 103 s SIGSTOP, at 107 s SIGCONT: sleeps on, until 110 s
 *
 * An alarm is a timer in the process. It expires in the tick's interrupt, and only sends SIGALRM.
 */
#include "kernel/process/syscall_clock.h"

#include "kernel/process/signal.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/time.h"

#define NS	    NANOSECONDS_PER_SECOND
#define NS_PER_TICK (NS / TICKS_PER_SECOND)

int give_timespec(uint32_t address, uint64_t ns)
{
	const struct linux_timespec time = timespec_of(ns);

	return give(address, &time, sizeof(time));
}

int clock_read(uint32_t clock, uint64_t *ns)
{
	*ns = time_ns();
	if (clock == CLOCK_MONOTONIC)
		return 0;
	return clock_read_more ? clock_read_more(clock, ns) : -EINVAL;
}

static int sys_clock_gettime(struct trap_frame *frame)
{
	uint64_t ns;
	int error = clock_read(frame->ebx, &ns);

	return error ? error : give_timespec(frame->ecx, ns);
}

/* times(2) counts ticks of all tasks of the program, and returns the ticks since boot. */
static int sys_times(struct trap_frame *frame)
{
	const struct process *leader = current->process->leader;
	struct linux_times times = { 0, 0, leader->children_user_ticks,
				     leader->children_system_ticks };

	for (const struct task *task = task_next(NULL); task; task = task_next(task)) {
		if (!task->process || task->process->leader != leader)
			continue;
		times.user += task->user_ticks;
		times.system += task->system_ticks;
	}
	if (frame->ebx && give(frame->ebx, &times, sizeof(times)) != 0)
		return -EFAULT;
	return (uint32_t)divide64(time_ns(), NS_PER_TICK, NULL) & 0x7fffffff;
}

/* In no queue: only a signal or the deadline ends this. */
int sleep_until(uint64_t deadline)
{
	int result;

	while ((result = wait_any(NULL, 0, deadline)) == 0)
		;
	return result == -ERESTART ? -ERESTART_SLEEP : 0;
}

/* If the rest cannot be written, the call does not begin again. */
int sleep_for(uint64_t ns, uint32_t rest, time_teller *tell)
{
	uint64_t *resume = &current->process->signals.resume_ns;
	uint64_t deadline = *resume ? *resume : time_ns() + ns;
	int result = sleep_until(deadline);
	uint64_t now = time_ns();

	*resume = result ? deadline : 0;
	if (!result || !rest || tell(rest, deadline > now ? deadline - now : 0) == 0)
		return result;
	*resume = 0;
	return -EFAULT;
}

static int sys_nanosleep(struct trap_frame *frame)
{
	uint64_t ns;
	int error = timespec_from_user(frame->ebx, &ns);

	return error ? error : sleep_for(ns, frame->ecx, give_timespec);
}

/* In the tick's interrupt. A timer that was late does not ring more than once for it. */
static void ring(struct timer *timer)
{
	struct process *process = list_entry((char *)timer, struct process, alarm);
	uint64_t now = time_ns(), next = timer->deadline + process->alarm_interval;

	signal_send(process, SIGALRM);
	if (process->alarm_interval)
		timer_start(timer, next > now ? next : now + process->alarm_interval, ring);
}

uint64_t alarm_left(void)
{
	const struct timer *alarm = &current->process->leader->alarm;
	uint64_t now = time_ns();

	if (!timer_is_running(alarm))
		return 0;
	return alarm->deadline > now + 1000 ? alarm->deadline - now : 1000;
}

/* It is the program's, so it rings although the thread that has set it ends. */
void alarm_set(uint64_t value, uint64_t interval)
{
	struct process *process = current->process->leader;

	timer_cancel(&process->alarm);
	process->alarm_interval = interval;
	if (value)
		timer_start(&process->alarm, time_ns() + value, ring);
}

/* Returns the seconds that were left, rounded; never 0 for an alarm that was set. */
static int sys_alarm(struct trap_frame *frame)
{
	uint64_t left = alarm_left();

	alarm_set((uint64_t)frame->ebx * NS, 0);
	return left && left < NS ? 1 : (int)divide64(left + NS / 2, NS, NULL);
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 27, "alarm", "d", sys_alarm },
	{ 43, "times", "p", sys_times },
	{ 162, "nanosleep", "pp", sys_nanosleep },
	{ 265, "clock_gettime", "dp", sys_clock_gettime },
};
