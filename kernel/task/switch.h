/* The task switch: kernel/task/switch.asm. */
#pragma once

#include <stdint.h>

struct task;

/* Saves the processor's state in the kernel and loads another one: returns when `from` runs again.
 */
void switch_to(struct task *from, struct task *to);

/* Where the first switch_to of a new kernel thread returns to. */
void thread_begin(void);

/* What switch_to keeps on the stack of a task that does not run. */
struct switch_frame {
	uint32_t edi, esi, ebx, ebp;
	void (*resume)(void);
};
