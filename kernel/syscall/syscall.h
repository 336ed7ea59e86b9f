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
	/* What its arguments are, one letter for each, for strace and for the gate: d decimal, x
	 * hexadecimal, o octal, p pointer, s string. Descriptors: f of an open file, which is held
	 * while the call runs; F the same, and only one task at a time moves the file's offset; a
	 * (at) of a directory, or AT_FDCWD: the call itself holds what it needs of it. */
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

/* Notes which descriptors a function holds: HELD(n) for argument n, HELD_OFFSET for argument 0 if
 * it also locks the file's offset. kernel/process/held_call.h has the calls that do so. The kernel
 * does not start if a row's letters say something else. */
#define HELD(argument) (1u << (argument))
#define HELD_OFFSET    0x101u
#define HOLDS(function, descriptors)                                                               \
	static const struct held_call function##_held                                              \
	    __attribute__((section(".held_calls"), used, aligned(4))) = { function, descriptors };

struct held_call {
	int (*run)(struct trap_frame *frame);
	uint32_t held;
};

/* Follows the name of a table of calls: the linker puts all tables together (boot/kernel.ld), so
 * that a kernel has the calls of the files that it is linked from. */
#define SYSCALL_TABLE __attribute__((section(".syscalls"), used, aligned(4)))
