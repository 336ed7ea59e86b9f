/* System calls: from the number to the function. */
#include "kernel/syscall/syscall.h"

#include "kernel/cpu/descriptors.h"
#include "kernel/lib/errno.h"
#include "kernel/cpu/gates.h"
#include "kernel/report/panic.h"
#include "kernel/syscall/syscall_trace.h"

/* In kernel/syscall/syscall_entry.asm. */
void syscall_entry(void);
void syscall_dispatch(struct trap_frame *frame);

extern const struct syscall syscalls_start[], syscalls_end[]; /* boot/kernel.ld */

static const struct syscall *calls[SYSCALL_LIMIT];

void syscall_register(const struct syscall *table, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		ASSERT(table[i].number < SYSCALL_LIMIT);
		calls[table[i].number] = &table[i];
	}
}

void syscall_register_tables(void)
{
	syscall_register(syscalls_start, syscalls_end - syscalls_start);
}

/* EXERCISE 3.1 (the gate, part 2):
   1. syscall_find: the number comes from ring 3: any 32 bits. NULL when there is no such call.
   2. syscall_dispatch: run the call, put its result where ring 3 finds it: into the frame's eax,
   and nowhere else. ENOSYS when there is no such call. While syscall_trace_on is set: begin the
   record before the call, and end it with the result.
   3. syscall_initialize: the gate of SYSCALL_VECTOR leads to syscall_entry. Ring 3 may use it, and
   it leaves interrupts on. */
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
	uint32_t record = syscall_trace_begin(frame);

	frame->eax = run(frame);
	syscall_trace_end(record, frame->eax);
}

void syscall_initialize(void)
{
	gate_set(SYSCALL_VECTOR, KERNEL_CODE, (uintptr_t)syscall_entry, GATE_TRAP, 3);
}
/* } SOLUTION 3.1 */
