/* Which signals the current process blocks. */
#pragma once

#include "kernel/process/signal_actions.h"

/* Signals of the set that were sent to the current task's program, and that all its tasks blocked,
 * are the current task's from now on. */
void signal_adopt(uint64_t set) OPTIONAL;

/* Wakes whenever a signal is sent to a program, where programs may have threads. */
extern struct wait_queue signal_sent;

/* Takes a pending signal of the set, blocked or not, with its cause: one of the current task's, or
 * of its program's that signal_adopt fetches. Returns its number, or 0. */
int signal_accept(uint64_t set, struct signal_cause *cause);

/* Copies a set of 64 signals from a user address. Returns 0, -EFAULT, or -EINVAL if the program
 * says that it has another size. */
int mask_from_user(uint64_t *mask, uint32_t address, uint32_t size);

/* Changes what is blocked; SIGKILL and SIGSTOP never are. */
void signal_block(uint64_t blocked);

/* Does so for one system call: what was blocked comes back when the call has ended, after the
 * handler of a signal if there was one. */
void signal_suspend(uint64_t blocked);
