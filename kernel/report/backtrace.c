/*
 * The backtrace: follows the chain of stack frames, and prints the callers with their names.
 *
 * Every function with a frame begins with "push %ebp; mov %esp, %ebp". So EBP points to the
 * caller's EBP, and the word above it is the return address:
 *
 *	address		contents
 *	0xc0118fa8	0xc0118fc8	<- EBP: the frame of the function that runs
 *	0xc0118fac	0xc0102345	   it returns to here, so here is its caller's code
 *	...				   (its caller's local variables and arguments)
 *	0xc0118fc8	0		   the caller's frame; 0: boot/entry.asm's EBP
 *	0xc0118fcc	0xc0100123
 *
 * The kernel is compiled with -fno-omit-frame-pointer for this. A backtrace runs when something is
 * broken, so it trusts nothing: each pointer must be in the stack in use, be aligned, and be
 * above the last one. Reads only; any context.
 */
#include "kernel/report/backtrace.h"

#include <stdbool.h>

#include "kernel/cpu/boot_memory.h"
#include "kernel/report/printk.h"
#include "kernel/report/symbols.h"

#define FRAMES_AT_MOST 32
#define PUSH_EBP       0x55 /* the first instruction of a function with a frame */

/* What the caller's prologue left on the stack: push %ebp; mov %esp, %ebp. */
struct stack_frame {
	struct stack_frame *caller;
	uintptr_t return_address;
};

/* The bounds of the stack in use. A frame elsewhere is garbage. */
static uintptr_t stack_start = (uintptr_t)boot_stack, stack_top = (uintptr_t)boot_stack_top;

/* For the task switch: from now on another stack is the one in use. */
void backtrace_use_stack(const void *stack, uint32_t size)
{
	stack_start = (uintptr_t)(stack ? stack : boot_stack);
	stack_top = stack ? stack_start + size : (uintptr_t)boot_stack_top;
}

/* EXERCISE 1.6 (the backtrace, part 1): follow the frames. Part 2 is in kernel/report/symbols.c.
   is_frame: can a frame be read at this address? It is a multiple of four, and the whole frame is
   in the stack, from stack_start up to stack_top.
   backtrace: calls print_return for each frame's return address, beginning with the frame at ebp,
   for FRAMES_AT_MOST frames at most. The stack grows down, so a caller's frame has a higher
   address: if it has not, that is the end.
   Pitfalls: a backtrace runs when something is broken, so every pointer may be garbage. Reading
   a bad one faults again. A sum may wrap. */
/* SOLUTION 1.6 { */
static bool is_frame(const struct stack_frame *frame)
{
	uintptr_t address = (uintptr_t)frame;

	return address % sizeof(uintptr_t) == 0 && address >= stack_start &&
	       address <= stack_top - sizeof(*frame);
}
/* } SOLUTION 1.6 */

/* The compiler leaves the frame out of functions that do not use the stack. Those, and functions
 * whose first instructions have not run yet, have their return address on top of it. */
static bool has_frame(uintptr_t eip)
{
	const uint8_t *start = (const void *)symbol_start(eip);

	return start && *start == PUSH_EBP && eip > (uintptr_t)start + 1;
}

static void print_place(uintptr_t address)
{
	char place[80];

	symbol_describe(address, place, sizeof(place));
	printk("backtrace: %s\n", place);
}

static void print_return(uintptr_t address)
{
	/* A call may be a function's last instruction, when it does not return. Look up the call
	 * itself: the address after it may be another function's first. */
	print_place(address - 1);
}

/* SOLUTION 1.6 { */
void backtrace(uintptr_t ebp)
{
	const struct stack_frame *frame = (const void *)ebp;

	for (unsigned i = 0; i < FRAMES_AT_MOST && is_frame(frame); i++) {
		print_return(frame->return_address);
		if (frame->caller <= frame)
			return;
		frame = frame->caller;
	}
}
/* } SOLUTION 1.6 */

/* An interrupt may come before the function has made its frame. Then EBP is still the caller's, and
 * the walk would leave the caller out: its address is found on top of the stack instead. */
void backtrace_interrupted(uintptr_t eip, uintptr_t esp, uintptr_t ebp)
{
	print_place(eip);
	if (!has_frame(eip) && is_frame((const void *)esp))
		print_return(*(uintptr_t *)esp);
	backtrace(ebp);
}
