/*
 * Pending and blocked signals, and their actions, from lesson 4 on.
 *
 * The default actions are here: end, stop, continue, or nothing. Handlers in programs, and signals
 * that are pending more than once, are optional functions of another module.
 */
#pragma once

#include "kernel/process/signal.h"

/* ---- sending ---- */

/* As signal_send, with a cause; NULL: the kernel. */
void signal_send_cause(struct process *process, int signal, const struct signal_cause *cause);

/* Sends a signal to each process of a group; to all but init and the sender for group -1. Returns
 * how many there were, which is all that signal 0 is for. */
unsigned signal_send_group_cause(int32_t pgrp, int signal, const struct signal_cause *cause);

/* Sends the current task a signal that it can neither block nor ignore, and that not even init
 * survives without a handler: it has caused an exception. */
void signal_force(int signal, const struct signal_cause *cause);

/* Which task of a program gets a signal that was sent to this one; called with interrupts disabled.
 * Without it that one does. */
struct process *signal_receiver(struct process *process, int signal,
				const struct signal_cause *cause) OPTIONAL;

/* Would this signal do nothing, because the process ignores it? */
bool signal_is_ignored(const struct process *process, int signal);

/* Signals that stop a process without a handler; all but these and SIGNALS_NOTHING end it. */
#define SIGNALS_STOP                                                                               \
	(SIGNAL_BIT(SIGSTOP) | SIGNAL_BIT(SIGTSTP) | SIGNAL_BIT(SIGTTIN) | SIGNAL_BIT(SIGTTOU))

/* Those that are never blocked and have no handler. */
#define SIGNALS_FIXED (SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP))

/* ---- for system calls: kernel/process/syscall_kill.c ---- */

/* Sends a signal (or 0: none) to one process; code is one of SI_... Returns 0 or -ESRCH. */
int kill_process(int32_t pid, int signal, int32_t code);

/* Is this a signal whose action can be read; or changed, if `changes`? */
bool signal_has_action(uint32_t signal, bool changes);

/* Changes the current process's action; if the signal is ignored from now on, it is dropped where
 * it is pending. */
void signal_set_action(uint32_t signal, const struct linux_signal_action *action);

/* ---- taking: of the current task ---- */

/* Takes the first of a set that is pending, with its cause: first those that exceptions cause, then
 * in the order of their numbers. Returns 0 if none is. */
int signal_take(uint64_t set, struct signal_cause *cause);

/* Drops one that is pending, or all. */
void signal_drop(struct process *process, int signal);
void signal_drop_all(struct process *process);

/* ---- delivering ---- */

/* From now on exceptions in user mode become signals, and signals are delivered on the way to user
 * mode. */
void signal_initialize(void);

/* If the frame is that of a system call that a signal has interrupted, the call is made again. */
void signal_restart_call(struct trap_frame *frame);

/* ---- handlers in programs, and queued signals: of some kernels ---- */

/* Makes the program go on in its handler; without this a signal that has one takes its default
 * action. */
void signal_call_handler(struct trap_frame *frame, int signal,
			 const struct signal_cause *cause) OPTIONAL;

/* A signal is sent that is already pending: it may be pending once more. */
void signal_queue(struct process_signals *signals, int signal,
		  const struct signal_cause *cause) OPTIONAL;

/* The signal was taken: is it still pending? Then fetches its next cause. */
bool signal_next_queued(struct process_signals *signals, int signal,
			struct signal_cause *cause) OPTIONAL;

/* Says more of the cause of a signal, which was this exception of user mode. */
void signal_explain(const struct trap_frame *frame, struct signal_cause *cause) OPTIONAL;

/* All signals were delivered: what signal_suspend (kernel/linux/signals/mask.h) has changed comes
 * back now, if nothing has brought it back yet. */
void signal_resume(void) OPTIONAL;
