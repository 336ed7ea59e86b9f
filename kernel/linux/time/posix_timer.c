/*
 * Timers that send signals: timer_create(2) and its like. A program has as many as it wants, and
 * each has a number. They are the program's, not a task's; exec deletes them, and fork leaves them.
 *
 *	comes, and its signal is not pending	it is sent, with the timer's number and value
 *	comes, and its signal is still pending	counted: timer_getoverrun(2) tells it
 *
 * Each timer has a signal of its own, although others with this number may be pending.
 *
 * Called by system calls, and by the tick.
 */
#include "kernel/linux/call.h"
#include "kernel/linux/list_each.h"
#include "kernel/linux/signals/frame.h"
#include "kernel/linux/time/interval_timer.h"
#include "kernel/process/signal_actions.h"
#include "mm/pool.h"

#define TIMERS_MAX 1024 /* of all programs: there is one user */

/* struct sigevent, as far as it is used (sigevent(7)): the rest of its 64 bytes is for threads,
 * which the C library makes. */
struct linux_signal_event {
	uint32_t value;
	int32_t signal, notify, task;
};

#define SIGEV_SIGNAL	0
#define SIGEV_NONE	1
#define SIGEV_THREAD	2 /* glibc's own: to the kernel as SIGEV_SIGNAL */
#define SIGEV_THREAD_ID 4 /* to one task of the program */

struct signal_timer {
	struct interval_timer timer; /* first: the two have one address */
	struct list all;
	int32_t program, number; /* the leader's pid; the program's number for it */
	int32_t task;		 /* pid of who gets the signal: any task of the program, or one */
	int32_t signal;		 /* 0: none */
	uint32_t value;		 /* for siginfo */
	uint32_t overrun;
};

/* One list for all programs: who looks for a timer looks for its program's too. The tick does not
 * walk along it, because each timer is in the kernel's own list (kernel/task/timer.h). */
static struct pool signal_timers = POOL_INITIALIZER(struct signal_timer);
static struct list timers = LIST_EMPTY(timers);

/* Has no task of the program taken the timer's last signal yet? */
static bool is_pending(const struct process *leader, const struct signal_timer *timer)
{
	for (struct task *task = task_next(NULL); task; task = task_next(task))
		if (task->process && task->process->leader == leader &&
		    signal_has_timer(&task->process->signals, timer->signal, timer->number))
			return true;
	return false;
}

/* In the tick. */
static void signal_timer_expire(struct timer *timer)
{
	struct signal_timer *mine = (struct signal_timer *)timer;
	struct process *process = process_find(mine->task);
	const struct signal_cause cause = { SI_TIMER, { .pid = mine->number }, mine->value };

	if (process && mine->signal && is_pending(process->leader, mine)) {
		mine->overrun++;
	} else if (process && mine->signal) {
		mine->overrun = 0;
		signal_send_cause(process, mine->signal, &cause);
	}
	interval_timer_again(&mine->timer);
}

/* The current program's timer with this number; or NULL. */
static struct signal_timer *signal_timer_find(int32_t number)
{
	list_for_each(struct signal_timer, timer, &timers, all)
		if (timer->program == calling_pid() && timer->number == number)
			return timer;
	return NULL;
}

/* For siginfo, when the signal is delivered: si_overrun. */
uint32_t signal_overrun(int32_t number)
{
	const struct signal_timer *timer = signal_timer_find(number);

	return timer ? timer->overrun : 0;
}

/* A signal that is pending stays so. */
static void timer_delete(struct signal_timer *timer)
{
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();

	timer_cancel(&timer->timer.timer);
	list_remove(&timer->all);
	pool_free(&signal_timers, timer);
}

void signal_timers_delete(void)
{
	list_for_each_safe(struct signal_timer, timer, &timers, all)
		if (timer->program == calling_pid())
			timer_delete(timer);
}

/* ---- the calls ---- */

/* Is this an event that a timer can have? */
static bool is_valid(const struct linux_signal_event *event)
{
	const struct process *process = process_find(event->task);

	if (event->notify == SIGEV_NONE)
		return true;
	if (event->signal < 1 || event->signal > SIGNALS)
		return false;
	if (event->notify == SIGEV_THREAD_ID)
		return process && process->leader == current->process->leader;
	return event->notify == SIGEV_SIGNAL || event->notify == SIGEV_THREAD;
}

/* The timer is stopped at first. Its number, the lowest one that the program has no timer for, goes
 * to the user address in EDX; without an event, at the address in ECX, it sends SIGALRM. */
SYSCALL_DEFINE(259, sys_timer_create, "dpp")
{
	struct linux_signal_event event = { 0, SIGALRM, SIGEV_SIGNAL, 0 };
	int32_t number = 0;

	while (signal_timer_find(number))
		number++;
	event.value = number;
	if (frame->ecx && copy_from_user(&event, frame->ecx, sizeof(event)) != 0)
		return -EFAULT;
	if (frame->ebx >= CLOCK_MONOTONIC_RAW && frame->ebx <= CLOCK_MONOTONIC_COARSE)
		return -EOPNOTSUPP;
	if (!interval_timer_has_clock(frame->ebx) || !is_valid(&event))
		return -EINVAL;
	if (give(frame->edx, &number, sizeof(number)) != 0)
		return -EFAULT;
	struct signal_timer *timer =
	    signal_timers.used < TIMERS_MAX ? pool_alloc(&signal_timers) : NULL;

	if (!timer)
		return -EAGAIN;
	timer->timer.is_of_the_day = frame->ebx == CLOCK_REALTIME;
	timer->program = calling_pid();
	timer->number = number;
	timer->task = event.notify == SIGEV_THREAD_ID ? event.task : timer->program;
	timer->signal = event.notify == SIGEV_NONE ? 0 : event.signal;
	timer->value = event.value;
	list_append(&timers, &timer->all);
	return 0;
}

/* The old setting goes to the user address in ESI (0: nowhere). */
SYSCALL_DEFINE(260, sys_timer_settime, "dxpp")
{
	enum time_format format = format_of_call(frame);
	struct signal_timer *timer = signal_timer_find(frame->ebx);
	struct timer_setting setting;
	int error = timer_setting_from_user(frame->edx, format, &setting);

	if (!error && !timer)
		error = -EINVAL;
	if (!error && frame->esi)
		error = interval_timer_give(&timer->timer, frame->esi, format);
	if (!error)
		interval_timer_set(&timer->timer, &setting, frame->ecx & TIMER_ABSTIME,
				   signal_timer_expire);
	return error;
}
SYSCALL_ROW_OF(409, sys_timer_settime64, "dxpp", sys_timer_settime)

/* A call that only needs the timer: its result, or -EINVAL. */
#define SYSCALL_TIMER(number, function, arguments, result)                                         \
	SYSCALL_DEFINE(number, function, arguments)                                                \
	{                                                                                          \
		struct signal_timer *timer = signal_timer_find(frame->ebx);                        \
                                                                                                   \
		return timer ? (result) : -EINVAL;                                                 \
	}

/* What is left until it comes, and what timer_create has counted since its last signal was taken. A
 * signal that is pending when its timer is deleted is still delivered: timer_delete(2). */
SYSCALL_TIMER(261, sys_timer_gettime, "dp",
	      interval_timer_give(&timer->timer, frame->ecx, format_of_call(frame)))
SYSCALL_ROW_OF(408, sys_timer_gettime64, "dp", sys_timer_gettime)
SYSCALL_TIMER(262, sys_timer_getoverrun, "d", (int)timer->overrun)
SYSCALL_TIMER(263, sys_timer_delete, "d", (timer_delete(timer), 0))
