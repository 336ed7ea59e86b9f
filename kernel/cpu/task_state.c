/*
 * The task state segment: the stack for traps from user mode, and the ports that user mode may use.
 *
 * The 386 was designed for one such segment per task, and to switch between tasks in hardware. This
 * kernel has one, for the two things that the processor reads in any case (Intel SDM volume 3,
 * 7.2.1; volume 1, "I/O permission bit map"):
 *
 *	offset	4	esp0	8	ss0	102	io_map_base	104	io_map: 65536 bits
 *
 * A trap from user mode cannot use the user's stack, which may be anywhere. It begins at ss0:esp0
 * instead, so a task switch must call task_state_set_stack, with interrupts disabled, before the
 * next return to user mode.
 */
#include "kernel/cpu/task_state.h"

#include "kernel/cpu/selectors.h"
#include "kernel/lib/string.h"

struct kernel_task kernel_task;

/* EXERCISE 2.6 (user mode, part 1): the segment that the processor reads by itself, when a trap
   comes from user mode (Intel SDM volume 3, 7.2.1).
   task_state_initialize: ss0 is the kernel's data segment, and the I/O permission map (at
   io_map_base bytes from the start of the segment) and the byte after it allow no port. Returns the
   segment's limit.
   task_state_set_stack sets esp0; it is called before user mode is entered.
   task_state_allow_port allows one port to user mode; a second call for the same port changes
   nothing.
   Pitfalls: a set bit forbids. A limit is the offset of the last byte. If io_map_base points to the
   saved registers, each bit that happens to be 0 there allows a port. */
/* SOLUTION 2.6 { */
uint32_t task_state_initialize(void)
{
	kernel_task.state.ss0 = KERNEL_DATA;
	kernel_task.state.io_map_base = offsetof(struct kernel_task, io_map);
	memset(kernel_task.io_map, 0xff, sizeof(kernel_task.io_map));
	kernel_task.end = 0xff;
	return offsetof(struct kernel_task, end);
}

void task_state_set_stack(uint32_t esp0)
{
	kernel_task.state.esp0 = esp0;
}

void task_state_allow_port(uint16_t port)
{
	kernel_task.io_map[port / 8] &= ~(1u << port % 8);
}
/* } SOLUTION 2.6 */
