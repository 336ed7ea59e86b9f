/*
 * Signals: how they are sent (kernel/process/signal_send.c) and delivered on the way to user mode
 * (kernel/process/signal_deliver.c).
 *
 *	any context	signal_send: pending, task->has_signal; a task in TASK_SLEEPING wakes
 *	the task	returns to user mode: takes one after another, and does what its action says
 *
 * This is what lesson 3 needs, where a signal can only end the one program (single.c). For what
 * lesson 4 adds see kernel/process/signal_actions.h.
 */
#pragma once

#include "kernel/process/process.h"

/* Sends a signal (1 to 64; 0: none): it is pending from now on, and the task wakes if it does not
 * block it. From any context. */
void signal_send(struct process *process, int signal);

/* Sends a signal to each process of a group. Returns how many there were. */
unsigned signal_send_group(int32_t pgrp, int signal);

/* Signals that are ignored without a handler. SIGCONT has its effect when it is sent. */
#define SIGNALS_NOTHING                                                                            \
	(SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGCONT) | SIGNAL_BIT(SIGURG) | SIGNAL_BIT(SIGWINCH))

/* Call it after pending or blocked signals have changed, with interrupts disabled: then the current
 * task handles its signals before it returns to user mode. */
static inline void signal_update(struct process *process)
{
	const struct process_signals *signals = &process->signals;

	process->task->has_signal = (signals->pending & ~signals->blocked) != 0;
	if (process->task == current && process->task->has_signal)
		trap_return_work |= WORK_SIGNAL;
}

/* The signal that an exception of user mode becomes: kernel/process/exception.c. */
int signal_of_exception(uint32_t vector);
