/* The engine of printf: formatted text, one character at a time. */
#pragma once

#include <stdarg.h>

/* Gives each character to put(target, character). Returns how many there were. */
int format_text(void (*put)(void *target, char character), void *target, const char *format,
		va_list arguments);
