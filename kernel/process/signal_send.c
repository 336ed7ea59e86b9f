/*
 * Sending signals: they become pending, and the task wakes.
 *
 * Nothing else happens here: what a signal does is decided when the task returns to user mode,
 * where it can end, stop, or call a handler without leaving anything half done in the kernel
 * (kernel/process/signal_deliver.c). Signals come from any context, interrupt handlers included, so
 * the sets are changed with interrupts disabled.
 *
 * task->has_signal is true whenever one is pending that is not blocked. It may stay true after
 * SIGCONT and a stop signal have cancelled each other: then a sleep ends early, and the call begins
 * again as if nothing had happened.
 */
#include "kernel/process/family.h"
#include "kernel/process/signal_actions.h"

#include "kernel/task/sched.h"

/* Signals that an exception causes: they are delivered first. */
#define SYNCHRONOUS                                                                                \
	(SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGTRAP) |     \
	 SIGNAL_BIT(SIGFPE))

/* Would the signal do nothing? Init ignores every signal that it has no handler for. */
bool signal_is_ignored(const struct process *process, int signal)
{
	uint32_t handler = process->signals.actions[signal - 1].handler;

	if (handler != SIGNAL_DEFAULT)
		return handler == SIGNAL_IGNORE;
	return (SIGNAL_BIT(signal) & SIGNALS_NOTHING) || process->task->pid == INIT;
}

/* The end of a child is reported by the signal that clone was given, all else by SIGCHLD. */
void process_notify_parent(struct process *process, int32_t code, int32_t status)
{
	struct process *parent = process->parent;
	const struct signal_cause cause = { code, { .pid = process->task->pid }, status };

	if (!parent)
		return;
	uint32_t flags = parent->signals.actions[SIGCHLD - 1].flags;
	bool is_end = code == CLD_EXITED || code == CLD_KILLED;
	int signal = is_end ? process->exit_signal : SIGCHLD;

	if (signal && (is_end || !(flags & SA_NOCLDSTOP)))
		signal_send_cause(parent, signal, &cause);
	wait_wake(&parent->children);
}

/* A stop signal and SIGCONT cancel each other, whether or not there are handlers. SIGCONT continues
 * a stopped task at once, before it is delivered: the task has to run to deliver it. So does
 * SIGKILL. */
static void cancel_opposite(struct process *process, int signal)
{
	struct process *leader = process->leader;

	if (SIGNAL_BIT(signal) & SIGNALS_STOP)
		process->signals.pending &= ~SIGNAL_BIT(SIGCONT);
	if (signal == SIGCONT)
		process->signals.pending &= ~SIGNALS_STOP;
	if (signal == SIGCONT && leader->stop_status) {
		leader->stop_status = 0;
		leader->has_stopped = false;
		leader->has_continued = true;
		process_notify_parent(leader, CLD_CONTINUED, SIGCONT);
	}
	if (signal == SIGCONT || signal == SIGKILL)
		sched_continue(process->task);
}

/* Synchronous signals are delivered first, then the lowest number. 0: the set is empty. */
static int first_of(uint64_t signals)
{
	if (signals & SYNCHRONOUS)
		signals &= SYNCHRONOUS;
	uint32_t low = signals, high = signals >> 32;

	return low ? __builtin_ctz(low) + 1 : high ? __builtin_ctz(high) + 33 : 0;
}

/* Interrupts are disabled: a signal that arrives between two of the steps would be lost. */
int signal_take(uint64_t set, struct signal_cause *cause)
{
	struct process_signals *signals = &current->process->signals;
	bool enabled = interrupts_disable();
	int signal = first_of(signals->pending & set);

	if (signal) {
		struct signal_cause *first = &signals->causes[signal - 1];

		*cause = *first;
		if (!signal_next_queued || !signal_next_queued(signals, signal, first))
			signals->pending &= ~SIGNAL_BIT(signal);
		signal_update(current->process);
	}
	interrupts_restore(enabled);
	return signal;
}

/* Queued ones, too. */
void signal_drop(struct process *process, int signal)
{
	struct signal_cause cause;

	while (signal_next_queued && signal_next_queued(&process->signals, signal, &cause))
		;
	process->signals.pending &= ~SIGNAL_BIT(signal);
}

/* For a process that ends: it will never return to user mode. */
void signal_drop_all(struct process *process)
{
	int signal;

	while ((signal = first_of(process->signals.pending)) != 0)
		signal_drop(process, signal);
}

/* A signal that is pending already stays pending once, with its first cause; unless signal_queue
 * keeps it as well. A task that is TASK_BLOCKED is not woken: it finds the signal when it is done.
 * sigtimedwait takes one signal: from then on others are for another task that waits.
 */
static void make_pending(struct process *process, int signal, const struct signal_cause *cause)
{
	static const struct signal_cause kernel = { .code = SI_KERNEL };
	struct process_signals *signals = &process->signals;
	struct task *task = process->task;
	uint64_t bit = SIGNAL_BIT(signal);

	cause = cause ? cause : &kernel;
	if (!(signals->pending & bit))
		signals->causes[signal - 1] = *cause;
	else if (signal_queue)
		signal_queue(signals, signal, cause);
	signals->pending |= bit;
	signal_update(process);
	if (task != current && task->life == TASK_SLEEPING &&
	    (bit & (~signals->blocked | signals->awaited)))
		sched_wake(task);
	if (signals->awaited & bit)
		signals->awaited = 0;
}

/* A signal that would be ignored is dropped here. One that is blocked stays, because its action may
 * have changed when it is unblocked. The kernel's own SIGKILL (exec failed halfway) reaches init as
 * well. */
void signal_send_cause(struct process *process, int signal, const struct signal_cause *cause)
{
	bool enabled = interrupts_disable();

	if (signal && signal_receiver)
		process = signal_receiver(process, signal, cause);
	if (signal && process->task->space && process->task->life != TASK_ZOMBIE) {
		cancel_opposite(process, signal);
		if ((process->signals.blocked & SIGNAL_BIT(signal)) ||
		    !signal_is_ignored(process, signal) || (signal == SIGKILL && !cause))
			make_pending(process, signal, cause);
	}
	interrupts_restore(enabled);
}

void signal_send(struct process *process, int signal)
{
	signal_send_cause(process, signal, NULL);
}

/* A kernel thread takes no signals, even if it has a process. */
unsigned signal_send_group_cause(int32_t pgrp, int signal, const struct signal_cause *cause)
{
	unsigned count = 0;

	for (struct process *each = process_next(NULL); each; each = process_next(each)) {
		bool is_other = each->task->pid != INIT && each->task != current;
		bool is_meant = pgrp == -1 ? is_other : each->pgrp == pgrp;

		if (!is_meant || !process_is_program(each))
			continue;
		signal_send_cause(each, signal, cause);
		count++;
	}
	return count;
}

unsigned signal_send_group(int32_t pgrp, int signal)
{
	return signal_send_group_cause(pgrp, signal, NULL);
}

/* A program that blocks or ignores the signal of its own exception would cause it again, for ever:
 * then the default action is taken, which ends it. */
void signal_force(int signal, const struct signal_cause *cause)
{
	struct process_signals *signals = &current->process->signals;
	struct linux_signal_action *action = &signals->actions[signal - 1];
	bool enabled = interrupts_disable();

	if ((signals->blocked & SIGNAL_BIT(signal)) || action->handler == SIGNAL_IGNORE)
		action->handler = SIGNAL_DEFAULT;
	signals->blocked &= ~SIGNAL_BIT(signal);
	make_pending(current->process, signal, cause);
	interrupts_restore(enabled);
}
