/* The last words of the kernel. */
#pragma once

#include <stdint.h>

struct trap_frame;

/* Prints the message and a backtrace, and ends the run with EXIT_PANIC. */
void panic(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* The same for a trap: the registers are the frame's, and the backtrace begins where the trap came from. */
void panic_in_trap(const struct trap_frame *frame, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

/* Prints the callers, with names: the return addresses of the frames from the one at ebp on. Stops at a
 * frame pointer that cannot be one. */
void backtrace(uintptr_t ebp);

#define ASSERT(condition)                                                                  \
	do {                                                                               \
		if (!(condition))                                                          \
			panic("%s:%d: not true: %s", __FILE__, __LINE__, #condition);      \
	} while (0)
