/* The kernel's global descriptor table. */
#pragma once

#include <stdint.h>

#include "kernel/cpu/selectors.h"

/* The operand of LGDT and LIDT. */
struct table_pointer {
	uint16_t limit; /* the last valid byte, not the size */
	uint32_t base;
} __attribute__((packed));

/* Loads the global descriptor table and the segment and task registers. double_fault runs, on a
 * stack of its own, when the task gate DOUBLE_FAULT_TASK is taken; it must not return. */
void descriptors_initialize(void (*double_fault)(void));

/* A program's own descriptors: packed as kernel/cpu/descriptor.h says, or 0 for none. */
struct thread_segments {
	uint64_t packed[3];
};

/* Sets the descriptors from THREAD_LOCAL on. FS and GS are null then: a trap in the kernel would
 * restore a selector whose descriptor may be gone. */
void descriptors_set_thread_local(const struct thread_segments *segments);
