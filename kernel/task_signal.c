/* Signals on the way to a task: they become pending, and the task wakes. What they do there is
 * decided when it goes back to ring 3 (kernel/signal.c). */
#include "kernel/task_signal.h"

#include <stddef.h>

#include "kernel/interrupts.h"
#include "kernel/sched.h"
#include "kernel/task_family.h"

#define STOP_SIGNALS                                                                               \
	(SIGNAL_BIT(SIGSTOP) | SIGNAL_BIT(SIGTSTP) | SIGNAL_BIT(SIGTTIN) | SIGNAL_BIT(SIGTTOU))
#define NEVER_BLOCKED (SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP))
#define INIT	      1 /* pid */

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

static void make_pending(struct task *task, int signal, const struct signal_cause *cause)
{
	static const struct signal_cause kernel = { .code = SI_KERNEL };

	task->signals.pending |= SIGNAL_BIT(signal);
	task->signals.causes[signal - 1] = cause ? *cause : kernel;
	if (task->signals.blocked & SIGNAL_BIT(signal))
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
	struct abi_signal_action *action = &signals->actions[signal - 1];

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
		task->signals.pending &= ~SIGNAL_BIT(signal);
}
