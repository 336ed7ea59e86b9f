/* Formatted output to every console (kernel/lib/format.h has the formats). */
#pragma once

#include <stdint.h>

#include "kernel/lib/format.h"

/* Prints to every registered console and to the log ring; at most 511 characters a call. May be
 * called from any context. */
void printk(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What printk printed last. log_length counts every byte since boot; byte n is at
 * log_ring[n % LOG_SIZE]. */
#define LOG_SIZE 16384u /* a power of two */
extern char log_ring[LOG_SIZE];
extern uint32_t log_length;

/* A console takes one character at a time and must not block for ever. */
struct console {
	void (*put)(char character);
	void (*put_unchanged)(char character); /* adds no carriage return to a newline */
	struct console *next;
};

/* Adds a console; the structure must live as long as the kernel. */
void console_register(struct console *console);

/* Writes text that a program has formatted for a terminal to every console, and not to the log
 * ring. May be called from any context. */
void console_write(const char *text, uint32_t length);
