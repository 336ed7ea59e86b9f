/* The arguments of mmap, and the function that maps. */
#pragma once

#include <stdint.h>

struct mapping {
	uint32_t address, length, protection, flags;
	int descriptor;
	uint32_t offset; /* in pages */
};

struct file;

/* Maps it into the current task's space; the file is the descriptor's, held by the caller, or NULL.
 * Returns the address, or a negated errno. Lesson 3 and lesson 6 have a function each:
 * calls_slot.c, calls_areas.c. */
int memory_map(const struct mapping *mapping, struct file *file);

/* Numbers of setrlimit: of the heap and private memory, of the stack, and of all memory. */
#define LIMIT_DATA  2
#define LIMIT_STACK 3
#define LIMIT_SPACE 9

/* The stack's limit that getrlimit returns, in bytes, until a program has set it. */
extern const uint32_t usual_stack;
