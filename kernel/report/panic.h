/* Panic: the kernel reports a broken invariant, and ends the run. */
#pragma once

#include <stdarg.h>

/* Prints the message and a backtrace, and ends the run with EXIT_PANIC. */
void panic(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Disables interrupts and prints the message; the caller may print more and must then end the
 * run. */
void panic_announce(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

#define ASSERT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			panic("%s:%d: not true: %s", __FILE__, __LINE__, #condition);              \
	} while (0)
