/* The kernel's global descriptor table. */
#pragma once

#include <stdint.h>

#define KERNEL_CODE	  0x08
#define KERNEL_DATA	  0x10
#define USER_CODE	  0x1b /* the last two bits are the privilege: ring 3 */
#define USER_DATA	  0x23
#define KERNEL_TASK	  0x28
#define DOUBLE_FAULT_TASK 0x30
#define THREAD_LOCAL	  0x3b /* ring 3's own segment: of the task that runs */

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
