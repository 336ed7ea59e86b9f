/*
 * System calls: Linux's numbers, registers and errors for i386. The number is in eax; arguments are
 * in ebx, ecx, edx, esi, edi, ebp; the result, or a negated errno, comes back in eax.
 */
#pragma once

#include "kernel/abi/entry.h"
#include "kernel/cpu/trap.h"

#define SYSCALL_LIMIT 512 /* numbers are below it */

struct syscall {
	uint16_t number;
	const char *name;
	/* How strace shows its arguments, one letter for each: d decimal, x hexadecimal, o octal, p
	 * pointer, s string. */
	const char *arguments;
	/* The frame has the arguments; the result goes into frame->eax. */
	int (*run)(struct trap_frame *frame);
};

/* Defines a call: a function of the frame's registers. */
#define CALL(name, result)                                                                         \
	static int name(struct trap_frame *frame)                                                  \
	{                                                                                          \
		return result;                                                                     \
	}

/* Follows the name of a table of calls: the linker puts all tables together (boot/kernel.ld), so
 * that a kernel has the calls of the files that it is linked from. */
#define SYSCALL_TABLE __attribute__((section(".syscalls"), used, aligned(4)))

/* The same for calls whose numbers other tables may have, too: these replace those. */
#define SYSCALL_TABLE_REPLACING __attribute__((section(".syscalls.replacing"), used, aligned(4)))
