/* Which signals the current process blocks. */
#pragma once

#include <stdint.h>

#include "kernel/task/wait.h"
#include "kernel/lib/optional.h"

/* Signals of the set that were sent to the current task's program, and that all its tasks blocked,
 * are the current task's from now on. */
void signal_adopt(uint64_t set) OPTIONAL;

/* Wakes whenever a signal is sent to a program, where programs may have threads. */
extern struct wait_queue signal_sent;

/* Changes what is blocked; SIGKILL and SIGSTOP never are. */
void signal_block(uint64_t blocked);

/* Does so for one system call: what was blocked comes back when the call has ended, after the
 * handler of a signal if there was one. */
void signal_suspend(uint64_t blocked);

/* Brings that back now, if nothing has done so yet. */
void signal_resume(void);
