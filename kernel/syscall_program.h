/* System calls about the program itself, its memory, and the machine: those that need neither files
 * nor other tasks. */
#pragma once

void syscall_program_register(void);
void syscall_memory_register(void);
void syscall_system_register(void);
void syscall_exec_register(void);
void syscall_futex_register(void);

/* Adds /proc/syscalls. */
void syscall_trace_register(void);
