/*
 * The gate for INT 0x80: from a program's registers to a C function and back.
 *
 *	the program	mov eax, 4; int 0x80
 *	the processor	gate 0x80 of the IDT: the kernel's stack, and EIP, CS, EFLAGS, ESP, SS on it
 *	gate.asm	syscall_entry: the other registers follow; that is a struct trap_frame
 *	here		syscall_dispatch: the call of that number runs, its result into the frame
 *	gate.asm	work first, if there is any (trap_return); registers back, IRET
 *
 * The frame is all that a call sees of the program. It runs with interrupts on, may sleep, and may
 * be pre-empted. SYSENTER's calls come to the same syscall_dispatch.
 */
#include "kernel/syscall/gate.h"

#include "kernel/cpu/gates.h"
#include "kernel/cpu/selectors.h"
#include "kernel/lib/errno.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/syscall_trace.h"

/* In kernel/syscall/gate.asm. */
void syscall_entry(void);
void syscall_dispatch(struct trap_frame *frame);

/* EXERCISE 3.1 (the gate, part 2):
   1. syscall_dispatch: run the call, put its result where a program finds it: into the frame's eax,
   and nowhere else. ENOSYS when there is no such call. While syscall_trace_on is set: begin the
   record before the call, and end it with the result.
   2. syscall_initialize: the gate of SYSCALL_VECTOR leads to syscall_entry. Ring 3 may use it, and
   it leaves interrupts on. */
/* SOLUTION 3.1 { */
static int run(struct trap_frame *frame)
{
	const struct syscall *call = syscall_find(frame->eax);

	return call ? call->run(frame) : -ENOSYS;
}

void syscall_dispatch(struct trap_frame *frame)
{
	if (!syscall_trace_on) {
		frame->eax = run(frame);
		return;
	}
	uint32_t record = syscall_trace_begin(frame);

	frame->eax = run(frame);
	syscall_trace_end(record, frame->eax);
}

void syscall_initialize(void)
{
	gate_set(SYSCALL_VECTOR, KERNEL_CODE, (uintptr_t)syscall_entry, GATE_TRAP, 3);
}
/* } SOLUTION 3.1 */
