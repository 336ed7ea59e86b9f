/* Waiting for a word of memory to change, between the tasks that see it. */
#pragma once

#include <stdint.h>

struct memory_object;

/* Wakes up to `count` tasks that wait at a user address of the current task, as FUTEX_WAKE does.
 * Returns how many. */
uint32_t futex_wake(uint32_t address, uint32_t count);

/* Which word of memory a user address is, in whatever space: its object, or its space, and where in
 * it. NULL: no memory is shared, and the address says it. */
struct futex_key {
	const void *memory;
	uint64_t offset;
	struct memory_object *object; /* that is `memory`, without a reference; or NULL */
};
extern struct futex_key (*futex_shared_key)(uint32_t address);

/* Makes a user address of the current task writable, or returns a negated errno. May sleep. NULL:
 * what a copy cannot reach is not there. */
extern int (*futex_bring)(uint32_t address);
