/*
 * The table of system calls: from the number to the function.
 *
 * Each file that has calls puts a table of its own into a section of the kernel (SYSCALL_TABLE),
 * and the linker lays these tables one after the other. So nobody names a file of calls, and a
 * kernel has the calls of the files that it is linked from:
 *
 *	syscalls_start	{ 3, "read", ... } { 4, "write", ... }	of one file
 *			{ 11, "execve", ... }			of another
 *	syscalls_end
 *	calls[]		calls[3], calls[4] and calls[11] point to them
 *
 * Filled in once, before the first program; read by every call.
 */
#include "kernel/syscall/syscall.h"

#include "kernel/report/panic.h"

extern const struct syscall syscalls_start[], syscalls_end[]; /* boot/kernel.ld */

static const struct syscall *calls[SYSCALL_LIMIT];

/* At start-up. A later table replaces calls of an earlier one: so the breadth overrides the core.
 */
void syscall_register(const struct syscall *table, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		ASSERT(table[i].number < SYSCALL_LIMIT);
		calls[table[i].number] = &table[i];
	}
}

/* All SYSCALL_TABLEs of the files that this kernel links, core first. */
void syscall_register_tables(void)
{
	syscall_register(syscalls_start, syscalls_end - syscalls_start);
}

/* EXERCISE 3.1 (the gate, part 3): the number comes from user mode: any 32 bits. NULL when there is
   no such call. */
/* SOLUTION 3.1 { */
const struct syscall *syscall_find(uint32_t number)
{
	return number < SYSCALL_LIMIT ? calls[number] : NULL;
}
/* } SOLUTION 3.1 */
