/* Segments and task states: the kernel's global descriptor table. */
#pragma once

#include <stdint.h>

#define KERNEL_CODE	  0x08
#define KERNEL_DATA	  0x10
#define KERNEL_TASK	  0x18
#define DOUBLE_FAULT_TASK 0x20

/* The operand of LGDT and LIDT. */
struct table_pointer {
	uint16_t limit; /* the last valid byte, not the size */
	uint32_t base;
} __attribute__((packed));

/* The task state segment: Intel SDM volume 3, figure 7-2. */
struct task_state {
	uint32_t link;
	uint32_t esp0, ss0, esp1, ss1, esp2, ss2;
	uint32_t cr3, eip, eflags;
	uint32_t eax, ecx, edx, ebx, esp, ebp, esi, edi;
	uint32_t es, cs, ss, ds, fs, gs;
	uint32_t ldt;
	uint16_t debug_trap;
	uint16_t io_map_base;
};

/* The processor saves the registers here when a task gate is taken. */
extern struct task_state kernel_task_state;

/* Loads the global descriptor table and the segment and task registers. double_fault runs, on a stack of
 * its own, when the task gate DOUBLE_FAULT_TASK is taken; it must not return. */
void descriptors_initialize(void (*double_fault)(void));
