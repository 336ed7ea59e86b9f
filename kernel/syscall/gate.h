/* The gate: how a program's INT 0x80 becomes a C function, and how its result goes back. */
#pragma once

#include "kernel/syscall/syscall.h"

/* Loads the gate for INT 0x80, for user mode. */
void syscall_initialize(void);

/* Registers the SYSCALL_TABLEs of all files that this kernel is linked from. Panics if two have the
 * same number. */
void syscall_register_tables(void);

/* The call of this number, or NULL. */
const struct syscall *syscall_find(uint32_t number);
