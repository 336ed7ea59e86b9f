/* Formatted output: to a buffer, and to every console. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The formats: %d %i %u %x %X %o %c %s %p %%, with the flags '-', '0', '#', '+' and ' ', a width
 * and a precision (digits or '*'), and the lengths h, hh, l, ll, z, j and t, as C11 7.21.6.1
 * defines them. %pS prints a kernel address with its symbol: "0xc0101234 kmain+0x24".
 */

/* Formats into buffer, at most size bytes with the closing NUL. Returns the length of the whole
 * text, so a result >= size says that it was cut. */
int vsnprintk(char *buffer, size_t size, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));
int snprintk(char *buffer, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints to every registered console and to the log ring; at most 511 characters a call. May be
 * called from any context. */
void printk(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The latest of what printk printed. log_length counts every byte since boot; byte n is at
 * log_ring[n % LOG_SIZE]. */
#define LOG_SIZE 16384u /* a power of two */
extern char log_ring[LOG_SIZE];
extern uint32_t log_length;

/* A console takes one character at a time and must not block for ever. */
struct console {
	void (*put)(char character);
	void (*put_unchanged)(char character); /* a newline is only that; NULL: put will do */
	struct console *next;
};

/* Adds a console; the structure must live as long as the kernel. What was printed before is
 * replayed to it. */
void console_register(struct console *console);

/* Writes to every console what a program has formatted for a terminal. The log ring does not get
 * it. From any context. */
void console_write(const char *text, uint32_t length);
