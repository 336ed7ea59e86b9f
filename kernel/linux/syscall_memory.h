/* What mmap is asked for, and who does it. */
#pragma once

#include <stdint.h>

struct mapping {
	uint32_t address, length, protection, flags;
	int descriptor;
	uint32_t offset; /* in pages */
};

/* Maps it into the current task's space. Returns the address, or a negated errno. Lesson 3 and
 * lesson 6 have a function each: syscall_memory.c, syscall_memory_areas.c. */
int memory_map(const struct mapping *mapping);

#define LIMIT_STACK 3 /* setrlimit's number of it */

/* What getrlimit says of the stack, in bytes, before a program has set it. */
extern uint32_t usual_stack;
