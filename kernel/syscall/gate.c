/*
 * The gate for INT 0x80, and the table of calls: from a program's registers to a C function and
 * back.
 *
 *	the program	mov eax, 4; int 0x80
 *	the processor	gate 0x80 of the IDT: the kernel's stack, and EIP, CS, EFLAGS, ESP, SS on it
 *	gate.asm	syscall_entry: the other registers follow; that is a struct trap_frame
 *	here		syscall_dispatch: the call of that number runs, its result into the frame
 *	gate.asm	work first, if there is any (trap_return); registers back, IRET
 *
 * The frame is all that a call sees of the program. It runs with interrupts enabled, may sleep, and
 * may be pre-empted. SYSENTER's calls come to the same syscall_dispatch.
 *
 * Each file that has calls puts a table of its own into a section of the kernel (SYSCALL_TABLE),
 * and the linker lays these tables one after the other. So no list names the files of calls, and
 * a kernel has the calls of the files that it is linked from:
 *
 *	syscalls_start	{ 3, "read", ... } { 4, "write", ... }	of one file
 *			{ 11, "execve", ... }			of another
 *	syscalls_end
 *	calls[]		calls[3], calls[4] and calls[11] point to them
 *
 * calls[] is filled in once, before the first program; every call reads it.
 */
#include "kernel/syscall/gate.h"

#include "kernel/cpu/gates.h"
#include "kernel/cpu/selectors.h"
#include "kernel/lib/errno.h"
#include "kernel/report/panic.h"
#include "kernel/syscall/syscall_trace.h"

/* boot/kernel.ld */
extern const struct syscall syscalls_start[], syscalls_end[];
extern const struct held_call held_calls_start[], held_calls_end[];

static const struct syscall *calls[SYSCALL_LIMIT];

/* In kernel/syscall/gate.asm. */
void syscall_entry(void);
void syscall_dispatch(struct trap_frame *frame);

/* Does its function hold the descriptors that the letters of its row promise? */
static void check_held(const struct syscall *call)
{
	const struct held_call *found = held_calls_start;
	uint32_t promised = 0;

	for (unsigned i = 0; call->arguments[i]; i++)
		if (call->arguments[i] == 'f' || call->arguments[i] == 'F')
			promised |= (call->arguments[i] == 'F' ? HELD_OFFSET : 1) << i;
	while (found < held_calls_end && found->run != call->run)
		found++;
	if (promised != (found < held_calls_end ? found->held : 0))
		panic("%s (%u): its letters \"%s\" and its function disagree about descriptors",
		      call->name, call->number, call->arguments);
}

/* Two calls of one number would be a program's riddle: which one runs? */
void syscall_register_tables(void)
{
	for (const struct syscall *call = syscalls_start; call < syscalls_end; call++) {
		ASSERT(call->number < SYSCALL_LIMIT && !calls[call->number]);
		check_held(call);
		calls[call->number] = call;
	}
}

/* EXERCISE 3.1 (the gate, part 2):

   - syscall_find(number): the entry of the table `calls`, or NULL if the kernel has no such
     call. `number` comes from user mode and may be any 32 bits.
   - syscall_dispatch(frame): runs the call whose number is in the frame's EAX, and leaves its
     result there and nowhere else; -ENOSYS if there is no such call. While syscall_trace_on is
     set the call gets a record: syscall_trace_begin before it runs, syscall_trace_end with the
     result after it.
   - syscall_initialize(): after this INT 0x80 in user mode enters the kernel at syscall_entry,
     with interrupts enabled.

   Pitfalls: calls[] has SYSCALL_LIMIT entries, and an index one too high is as wrong as -1. A
   call may change the frame while it runs (execve replaces all of it). */
/* SOLUTION 3.1 { */
const struct syscall *syscall_find(uint32_t number)
{
	return number < SYSCALL_LIMIT ? calls[number] : NULL;
}

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
	uint32_t record = syscall_trace_begin(frame, syscall_find(frame->eax));

	frame->eax = run(frame);
	syscall_trace_end(record, frame->eax);
}

void syscall_initialize(void)
{
	gate_set(SYSCALL_VECTOR, KERNEL_CODE, (uintptr_t)syscall_entry, GATE_TRAP, 3);
}
/* } SOLUTION 3.1 */
