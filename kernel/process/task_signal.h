/* Signals on the way to a task; kernel/process/signal.c takes them from there. */
#pragma once

#include <stdint.h>

#include "kernel/task/task.h"

/* What a signal does when there is no handler. */
enum signal_default {
	DEFAULT_TERMINATE,
	DEFAULT_IGNORE,
	DEFAULT_STOP,
	DEFAULT_CONTINUE,
};

enum signal_default signal_default(int signal);

/* Sends the current task a signal that it can neither block nor ignore, and that not even init
 * survives without a handler: it has caused an exception. */
void task_signal_force(int signal, const struct signal_cause *cause);

/* Changes what the current task blocks; SIGKILL and SIGSTOP never are. */
void task_signal_block(uint64_t blocked);

/* Does so for one system call: what was blocked comes back when the call has ended, behind the
 * handler of a signal if there was one. */
void task_signal_suspend(uint64_t blocked);

/* Brings that back now, if nothing has done so yet. */
void task_signal_resume(void);

/* The first of a set of signals in the order in which they are taken, or 0. */
int task_signal_lowest(uint64_t signals);

/* Takes one that is pending, with its cause. Signals from SIGNAL_QUEUED on are pending as often as
 * they were sent. */
void task_signal_take(int signal, struct signal_cause *cause);

/* Drops all that is pending. */
void task_signal_drop_all(struct task *task);

/* Drops what is pending and would do nothing now, after an action has changed. */
void task_signal_forget_ignored(struct task *task, int signal);

/* The signal that an exception of ring 3 becomes, and its cause: kernel/process/exception.c. */
int signal_of_exception(const struct trap_frame *frame, struct signal_cause *cause);
