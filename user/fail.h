/*
 * How a program of the storage lab reports an error and ends: a line on stderr, after its name.
 * #define PROGRAM "name" before this is included.
 */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void __attribute__((noreturn, format(printf, 2, 3))) fail(int status, const char *format,
								 ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs(PROGRAM ": ", stderr);
	vfprintf(stderr, format, arguments);
	fputs("\n", stderr);
	exit(status);
}
