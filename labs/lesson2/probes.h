/* Code in user mode, for experiments. */
#pragma once

#include <stdint.h>

#include "kernel/cpu/user_mode.h"

/*
 * Copies length bytes of code to a user page and runs them there, until an exception that
 * nobody registered for brings them back; this also is how they end on purpose. The argument is
 * on top of their stack.
 */
struct user_visit ring3_run(const uint8_t *code, uint32_t length, uint32_t argument);
