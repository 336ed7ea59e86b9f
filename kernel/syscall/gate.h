/* The gate: how a program's INT 0x80 becomes a C function, and how its result goes back. */
#pragma once

/* Loads the gate for INT 0x80, for ring 3. */
void syscall_initialize(void);
