/* The task state segment: the stack for traps from user mode, and the ports that it may use. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Intel SDM volume 3, figure 7-2. */
struct task_state {
	uint32_t link;
	uint32_t esp0, ss0, esp1, ss1, esp2, ss2;
	uint32_t cr3, eip, eflags;
	uint32_t eax, ecx, edx, ebx, esp, ebp, esi, edi;
	uint32_t es, cs, ss, ds, fs, gs;
	uint32_t ldt;
	uint16_t debug_trap;
	uint16_t io_map_base; /* offset of the permission map from the start of the segment */
};

#define TASK_STATE_ESP0 4 /* for assembly */
_Static_assert(offsetof(struct task_state, esp0) == TASK_STATE_ESP0, "esp0");

#define IO_PORTS 65536u

/* The kernel's task state with its permission map: a set bit forbids a port to user mode. */
struct kernel_task {
	struct task_state state;
	uint8_t io_map[IO_PORTS / 8];
	uint8_t end; /* all ones: the processor may read one byte further than the port's own */
};

extern struct kernel_task kernel_task;

/* Fills in the kernel's task state: no port is allowed. Returns the last byte that the processor
 * may use, which is the limit of its descriptor. */
uint32_t task_state_initialize(void);

/* Sets the kernel stack for the next trap from user mode. */
void task_state_set_stack(uint32_t esp0);

/* Allows one port to user mode. */
void task_state_allow_port(uint16_t port);
