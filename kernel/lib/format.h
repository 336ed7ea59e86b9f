/* Formatted text into a buffer. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

/*
 * The formats: %d %i %u %x %X %o %c %s %p %%, with the flags '-', '0', '#', '+' and ' ', a width
 * and a precision (digits or '*'), and the lengths h, hh, l, ll, z, j and t, as C11 7.21.6.1
 * defines them. %p is "0x" and eight digits.
 */

/* Formats into buffer, at most size bytes with the closing NUL. Returns the length of the whole
 * text, so a result >= size says that it was cut. */
int vsnprintk(char *buffer, size_t size, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));
int snprintk(char *buffer, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
