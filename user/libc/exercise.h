/* The content of a blank in a program as handed out: says which exercise is not written yet, and
 * ends the program. */
#pragma once

#if __STDC_HOSTED__ /* a program of this computer, with its C library */

#include <stdio.h>
#include <stdlib.h>

static inline void __attribute__((noreturn)) exercise_missing(const char *number)
{
	fprintf(stderr, "exercise %s is not written yet (labs/%s%.*s/README.md)\n", number,
		*number == 'S' ? "storage" : "lesson", *number != 'S', number);
	exit(EXIT_FAILURE);
}

#else

/* In user/libc/missing.asm. */
void exercise_missing(const char *number) __attribute__((noreturn));

#endif
