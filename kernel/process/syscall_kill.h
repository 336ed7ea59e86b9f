/* What the calls that send signals share. */
#pragma once

#include <stdint.h>

#define SIGNAL_MASK_SIZE 8 /* bytes of a set of 64 signals */

/* Sends a signal (or 0: none) to one process; code is one of SI_... Returns 0 or -ESRCH. */
int kill_process(int32_t pid, int signal, int32_t code);
