/* The last words of the kernel. */
#pragma once

#include <stdarg.h>

/* Prints the message and a backtrace, and ends the run with EXIT_PANIC. */
void panic(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Switches interrupts off and prints the message, for those who have more to say before the end. */
void panic_announce(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

#define ASSERT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			panic("%s:%d: not true: %s", __FILE__, __LINE__, #condition);              \
	} while (0)
