/* What the calls that send signals share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/abi/signal.h"

#define SIGNAL_MASK_SIZE 8 /* bytes of a set of 64 signals */

/* Sends a signal (or 0: none) to one process; code is one of SI_... Returns 0 or -ESRCH. */
int kill_process(int32_t pid, int signal, int32_t code);

/* Is this a signal whose action can be looked at, and changed if `changes`? */
bool signal_has_action(uint32_t signal, bool changes);

/* Changes the current process's action; what is pending and ignored from now on is dropped. */
void signal_set_action(uint32_t signal, const struct linux_signal_action *action);
