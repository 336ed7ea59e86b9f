/*
 * Signals: on the way to a process (kernel/process/signal_send.c), and at their end, on the way to
 * user mode (kernel/process/signal_deliver.c).
 *
 *	anybody		signal_send: pending, task->has_signal; the task wakes if it is
 * TASK_SLEEPING the task	returns to user mode: takes one after another, and does what its
 * action says
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/abi/signal.h"
#include "kernel/cpu/trap.h"
#include "kernel/process/process.h"

/* ---- sending ---- */

/*
 * Sends a signal (1 to 64): it is pending from now on, and the task wakes if it does not block it.
 * From any context. cause may be NULL: the kernel.
 */
void signal_send_cause(struct process *process, int signal, const struct signal_cause *cause);
void signal_send(struct process *process, int signal);

/* Sends a signal to each process of a group. Returns how many there were. */
unsigned signal_send_group(int32_t pgrp, int signal);

/* Sends the current task a signal that it can neither block nor ignore, and that not even init
 * survives without a handler: it has caused an exception. */
void signal_force(int signal, const struct signal_cause *cause);

/* Would this signal do nothing, because the process ignores or blocks it? (A terminal asks this for
 * SIGTTIN and SIGTTOU.) */
bool signal_is_ignored(const struct process *process, int signal);

/* What a signal does when there is no handler. */
enum signal_default {
	DEFAULT_TERMINATE,
	DEFAULT_IGNORE,
	DEFAULT_STOP,
	DEFAULT_CONTINUE,
};

enum signal_default signal_default(int signal);

/* Drops what is pending and would do nothing now, after an action has changed. */
void signal_forget_ignored(struct process *process, int signal);

/* ---- taking: of the current task ---- */

/* Changes what is blocked; SIGKILL and SIGSTOP never are. */
void signal_block(uint64_t blocked);

/* Does so for one system call: what was blocked comes back when the call has ended, after the
 * handler of a signal if there was one. */
void signal_suspend(uint64_t blocked);

/* Brings that back now, if nothing has done so yet. */
void signal_resume(void);

/* The first of a set of signals in the order in which they are taken, or 0. */
int signal_lowest(uint64_t signals);

/* Takes one that is pending, with its cause. Signals from SIGNAL_QUEUED on are pending as often as
 * they were sent. */
void signal_take(int signal, struct signal_cause *cause);

/* Drops all that is pending. */
void signal_drop_all(struct process *process);

/* The signal that an exception of user mode becomes, and its cause: kernel/process/exception.c. */
int signal_of_exception(const struct trap_frame *frame, struct signal_cause *cause);

/* ---- delivering ---- */

/* Makes signals of user mode's exceptions, and delivers signals on the way there. */
void signal_initialize(void);

/* ---- kernel/process/signal_frame.c ---- */

/*
 * Makes user mode go on in the handler of a signal: what the program was doing is saved on its
 * stack, and the frame changed. blocked is what sigreturn will block again. Returns 0 or -EFAULT.
 */
int signal_frame_build(struct trap_frame *frame, int signal, const struct signal_cause *cause,
		       const struct linux_signal_action *action, uint64_t blocked);

/* Goes back to what the program was doing when the handler was called: the frame is as it was, what
 * is blocked too. Returns what belongs into eax. A frame that makes no sense ends the program. */
int signal_frame_restore(struct trap_frame *frame, bool with_info);

/* Is esp inside this alternative stack? */
bool signal_stack_holds(const struct linux_signal_stack *stack, uint32_t esp);
