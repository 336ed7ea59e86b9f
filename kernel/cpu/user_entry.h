/* To user mode and back (kernel/cpu/user_entry.asm). */
#pragma once

#include <stdint.h>

/* Goes to user mode, with this stack and interrupts enabled; the code and its stack must be in user
 * pages. Returns when user_leave is called in a trap from there. Must not be called again before
 * that. */
void user_enter(uint32_t eip, uint32_t esp);
void user_leave(void) __attribute__((noreturn));
