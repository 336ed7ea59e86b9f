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
#include "kernel/linux/time/posix_timer.h"

#include "kernel/abi/clocks.h"
#include "kernel/abi/signal_handler.h"
#include "kernel/cpu/interrupts.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/time/interval_timer.h"
#include "kernel/linux/signals/frame.h"
#include "kernel/process/family.h"
#include "kernel/process/signal_actions.h"
#include "kernel/syscall/syscall.h"
#include "mm/pool.h"
#include "mm/user_copy.h"

#define TIMERS_MAX 1024 /* of all programs: there is one user */

/* struct sigevent, as far as it is used. */
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

static struct pool pool = POOL_INITIALIZER(struct signal_timer);
static struct list timers = LIST_EMPTY(timers);

static int32_t program_of_current(void)
{
	return current->process->leader->task->pid;
}

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
static void expire(struct timer *timer)
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

static struct signal_timer *find(int32_t number)
{
	int32_t program = program_of_current();

	for (struct list *each = timers.next; each != &timers; each = each->next) {
		struct signal_timer *timer = list_entry(each, struct signal_timer, all);

		if (timer->program == program && timer->number == number)
			return timer;
	}
	return NULL;
}

uint32_t signal_overrun(int32_t number)
{
	const struct signal_timer *timer = find(number);

	return timer ? timer->overrun : 0;
}

static void delete (struct signal_timer *timer)
{
	bool enabled = interrupts_disable();

	timer_cancel(&timer->timer.timer);
	list_remove(&timer->all);
	interrupts_restore(enabled);
	pool_free(&pool, timer);
}

void signal_timers_delete(void)
{
	int32_t program = program_of_current();

	for (struct list *each = timers.next, *next; each != &timers; each = next) {
		struct signal_timer *timer = list_entry(each, struct signal_timer, all);

		next = each->next;
		if (timer->program == program)
			delete (timer);
	}
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

static int32_t free_number(void)
{
	int32_t number = 0;

	while (find(number))
		number++;
	return number;
}

static int sys_timer_create(struct trap_frame *frame)
{
	struct linux_signal_event event = { 0, SIGALRM, SIGEV_SIGNAL, 0 };
	int32_t number = free_number();

	event.value = number;
	if (frame->ecx && copy_from_user(&event, frame->ecx, sizeof(event)) != 0)
		return -EFAULT;
	if (frame->ebx >= CLOCK_MONOTONIC_RAW && frame->ebx <= CLOCK_MONOTONIC_COARSE)
		return -EOPNOTSUPP;
	if (!interval_timer_has_clock(frame->ebx) || !is_valid(&event))
		return -EINVAL;
	if (give(frame->edx, &number, sizeof(number)) != 0)
		return -EFAULT;
	struct signal_timer *timer = pool.used < TIMERS_MAX ? pool_alloc(&pool) : NULL;

	if (!timer)
		return -EAGAIN;
	timer->timer.is_of_the_day = frame->ebx == CLOCK_REALTIME;
	timer->program = program_of_current();
	timer->number = number;
	timer->task = event.notify == SIGEV_THREAD_ID ? event.task : timer->program;
	timer->signal = event.notify == SIGEV_NONE ? 0 : event.signal;
	timer->value = event.value;
	list_append(&timers, &timer->all);
	return 0;
}

static int set(struct trap_frame *frame, bool wide)
{
	struct signal_timer *timer = find(frame->ebx);
	struct timer_setting setting;
	int error = timer_setting_from_user(frame->edx, wide, &setting);

	if (!error && !timer)
		error = -EINVAL;
	if (!error && frame->esi)
		error = interval_timer_give(&timer->timer, frame->esi, wide);
	if (!error)
		interval_timer_set(&timer->timer, &setting, frame->ecx & TIMER_ABSTIME, expire);
	return error;
}

static int get(struct trap_frame *frame, bool wide)
{
	const struct signal_timer *timer = find(frame->ebx);

	return timer ? interval_timer_give(&timer->timer, frame->ecx, wide) : -EINVAL;
}

static int sys_timer_getoverrun(struct trap_frame *frame)
{
	const struct signal_timer *timer = find(frame->ebx);

	return timer ? (int)timer->overrun : -EINVAL;
}

static int sys_timer_delete(struct trap_frame *frame)
{
	struct signal_timer *timer = find(frame->ebx);

	if (!timer)
		return -EINVAL;
	delete (timer);
	return 0;
}

CALL(sys_timer_settime, set(frame, false))
CALL(sys_timer_settime64, set(frame, true))
CALL(sys_timer_gettime, get(frame, false))
CALL(sys_timer_gettime64, get(frame, true))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 259, "timer_create", "dpp", sys_timer_create },
	{ 260, "timer_settime", "dxpp", sys_timer_settime },
	{ 261, "timer_gettime", "dp", sys_timer_gettime },
	{ 262, "timer_getoverrun", "d", sys_timer_getoverrun },
	{ 263, "timer_delete", "d", sys_timer_delete },
	{ 408, "timer_gettime64", "dp", sys_timer_gettime64 },
	{ 409, "timer_settime64", "dxpp", sys_timer_settime64 },
};
