/* Signals on the way to a task: they become pending, and the task wakes. What they do there is
 * decided when it goes back to ring 3 (kernel/process/signal.c). */
#include "kernel/process/task_signal.h"

#include <stddef.h>

#include "kernel/cpu/interrupts.h"
#include "mm/pool.h"
#include "kernel/task/sched.h"
#include "kernel/process/family.h"

#define STOP_SIGNALS                                                                               \
	(SIGNAL_BIT(SIGSTOP) | SIGNAL_BIT(SIGTSTP) | SIGNAL_BIT(SIGTTIN) | SIGNAL_BIT(SIGTTOU))
#define NEVER_BLOCKED (SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP))
#define INIT	      1 /* pid */
#define QUEUED_MAX    1024u

enum signal_default signal_default(int signal)
{
	if (SIGNAL_BIT(signal) & STOP_SIGNALS)
		return DEFAULT_STOP;
	switch (signal) {
	case SIGCONT:
		return DEFAULT_CONTINUE;
	case SIGCHLD:
	case SIGURG:
	case SIGWINCH:
		return DEFAULT_IGNORE;
	default:
		return DEFAULT_TERMINATE;
	}
}

/* Would the signal do nothing? Init is safe from all that it has no handler for. */
static bool is_ignored(const struct task *task, int signal)
{
	uint32_t handler = task->signals.actions[signal - 1].handler;
	enum signal_default action = signal_default(signal);

	if (handler != SIGNAL_DEFAULT)
		return handler == SIGNAL_IGNORE;
	return action == DEFAULT_IGNORE || action == DEFAULT_CONTINUE || task->pid == INIT;
}

bool task_signal_ignored(const struct task *task, int signal)
{
	return (task->signals.blocked & SIGNAL_BIT(signal)) || is_ignored(task, signal);
}

bool task_signal_pending(void)
{
	return (current->signals.pending & ~current->signals.blocked) != 0;
}

/* Stopping and going on cancel each other, whether or not there are handlers. */
static void cancel_opposite(struct task *task, int signal)
{
	if (SIGNAL_BIT(signal) & STOP_SIGNALS)
		task->signals.pending &= ~SIGNAL_BIT(SIGCONT);
	if (signal == SIGCONT)
		task->signals.pending &= ~STOP_SIGNALS;
	if (task->life != TASK_STOPPED || (signal != SIGCONT && signal != SIGKILL))
		return;
	if (signal == SIGCONT) {
		task->has_stopped = false;
		task->has_continued = true;
		task_notify_parent(task, CLD_CONTINUED, SIGCONT);
	}
	sched_continue(task);
}

/* ---- signals that are pending more than once ---- */

struct queued_signal {
	struct queued_signal *next;
	int signal;
	struct signal_cause cause;
};

static struct pool queued = POOL_INITIALIZER(struct queued_signal);

/* Without memory, or beyond the limit, the signal is pending once less. */
static void enqueue(struct task_signals *signals, int signal, const struct signal_cause *cause)
{
	struct queued_signal **end = &signals->queue;
	struct queued_signal *made = queued.used < QUEUED_MAX ? pool_alloc(&queued) : NULL;

	if (!made)
		return;
	made->signal = signal;
	made->cause = *cause;
	while (*end)
		end = &(*end)->next;
	*end = made;
}

/* Takes the next one of a signal off the queue. */
static bool dequeue(struct task_signals *signals, int signal, struct signal_cause *cause)
{
	struct queued_signal **at = &signals->queue, *found;

	while (*at && (*at)->signal != signal)
		at = &(*at)->next;
	found = *at;
	if (!found)
		return false;
	*cause = found->cause;
	*at = found->next;
	pool_free(&queued, found);
	return true;
}

int task_signal_lowest(uint64_t signals)
{
	uint32_t low = signals, high = signals >> 32;

	return low ? __builtin_ctz(low) + 1 : high ? __builtin_ctz(high) + 33 : 0;
}

void task_signal_take(int signal, struct signal_cause *cause)
{
	struct task_signals *signals = &current->signals;
	bool enabled = interrupts_disable();

	*cause = signals->causes[signal - 1];
	if (!dequeue(signals, signal, &signals->causes[signal - 1]))
		signals->pending &= ~SIGNAL_BIT(signal);
	interrupts_restore(enabled);
}

static void drop(struct task_signals *signals, int signal)
{
	struct signal_cause cause;

	while (dequeue(signals, signal, &cause))
		;
	signals->pending &= ~SIGNAL_BIT(signal);
}

void task_signal_drop_all(struct task *task)
{
	for (int signal = 1; signal <= SIGNALS; signal++)
		drop(&task->signals, signal);
}

static void make_pending(struct task *task, int signal, const struct signal_cause *cause)
{
	static const struct signal_cause kernel = { .code = SI_KERNEL };

	if (signal >= SIGNAL_QUEUED && (task->signals.pending & SIGNAL_BIT(signal)))
		enqueue(&task->signals, signal, cause ? cause : &kernel);
	else
		task->signals.causes[signal - 1] = cause ? *cause : kernel;
	task->signals.pending |= SIGNAL_BIT(signal);
	if (task->signals.blocked & ~task->signals.awaited & SIGNAL_BIT(signal))
		return;
	if (task == current)
		trap_return_work |= WORK_SIGNAL;
	else if (task->life == TASK_SLEEPING)
		sched_wake(task);
}

void task_signal_cause(struct task *task, int signal, const struct signal_cause *cause)
{
	bool enabled = interrupts_disable();

	if (task->space && task->life != TASK_ZOMBIE) {
		cancel_opposite(task, signal);
		if ((task->signals.blocked & SIGNAL_BIT(signal)) || !is_ignored(task, signal))
			make_pending(task, signal, cause);
	}
	interrupts_restore(enabled);
}

void task_signal(struct task *task, int signal)
{
	task_signal_cause(task, signal, NULL);
}

unsigned task_signal_group(int32_t pgrp, int signal)
{
	unsigned count = 0;

	for (struct task *task = task_next(NULL); task; task = task_next(task)) {
		if (task->pgrp != pgrp || !task->space)
			continue;
		task_signal(task, signal);
		count++;
	}
	return count;
}

void task_signal_force(int signal, const struct signal_cause *cause)
{
	struct task_signals *signals = &current->signals;
	struct linux_signal_action *action = &signals->actions[signal - 1];

	if ((signals->blocked & SIGNAL_BIT(signal)) || action->handler == SIGNAL_IGNORE)
		action->handler = SIGNAL_DEFAULT;
	signals->blocked &= ~SIGNAL_BIT(signal);
	make_pending(current, signal, cause);
}

void task_signal_block(uint64_t blocked)
{
	bool enabled = interrupts_disable();

	current->signals.blocked = blocked & ~NEVER_BLOCKED;
	if (task_signal_pending())
		trap_return_work |= WORK_SIGNAL;
	interrupts_restore(enabled);
}

void task_signal_suspend(uint64_t blocked)
{
	bool enabled = interrupts_disable();

	current->signals.saved = current->signals.blocked;
	current->signals.is_suspended = true;
	trap_return_work |= WORK_SIGNAL; /* so that it comes back in any case */
	task_signal_block(blocked);
	interrupts_restore(enabled);
}

void task_signal_resume(void)
{
	if (!current->signals.is_suspended)
		return;
	current->signals.is_suspended = false;
	task_signal_block(current->signals.saved);
}

void task_signal_forget_ignored(struct task *task, int signal)
{
	if (is_ignored(task, signal))
		drop(&task->signals, signal);
}
