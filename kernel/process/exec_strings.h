/* The arguments and the environment of a new program. */
#pragma once

#include <stdint.h>

/* The strings of a program's arguments and of its environment, one after the other, each with its
 * NUL. */
struct exec_strings {
	char *text; /* EXEC_STRINGS bytes, from page_alloc */
	uint32_t length;
	uint32_t arguments, environment; /* how many */
	uint32_t depth;			 /* of files that named another program: exec_other_kind */
};

#define EXEC_STRINGS 131072u /* what Linux grants at least */

/* Allocate and free the memory. Returns 0 or -ENOMEM. */
int exec_strings_create(struct exec_strings *strings);
void exec_strings_destroy(struct exec_strings *strings);

/* Appends a string, and counts it: pass &strings->arguments or &strings->environment. All arguments
 * come before the environment. Returns 0 or -E2BIG. */
int exec_add(struct exec_strings *strings, const char *text, uint32_t *count);

/* Adds what two user arrays point to, each up to a null pointer; a null array is empty.
 * Returns 0, -EFAULT or -E2BIG. */
int exec_add_from_user(struct exec_strings *strings, uint32_t arguments, uint32_t environment);
