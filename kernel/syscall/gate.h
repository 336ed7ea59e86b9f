/* The gate: how a program's INT 0x80 becomes a C function, and how its result goes back. */
#pragma once

#include "kernel/syscall/syscall.h"

/* Loads the gate for INT 0x80, for user mode. */
void syscall_initialize(void);

/* Registers the SYSCALL_TABLEs of all files that this kernel is linked from, core first. */
void syscall_register_tables(void);

/* Adds calls; the table must live as long as the kernel. If a number is registered twice, the later
 * call is used. */
void syscall_register(const struct syscall *table, size_t count);

/* The call of this number, or NULL. */
const struct syscall *syscall_find(uint32_t number);
