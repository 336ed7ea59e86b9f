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

/* Sets the descriptor THREAD_LOCAL: packed as kernel/cpu/descriptor.h says, or 0 for none. FS and
 * GS are null then: a trap in the kernel would restore a selector whose descriptor may be gone. */
void descriptors_set_thread_local(uint64_t packed);
