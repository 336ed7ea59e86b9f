/* The gate: how a program's INT 0x80 becomes a C function, and how its result goes back. */
#pragma once

/* Loads the gate for INT 0x80, for user mode. */
void syscall_initialize(void);
