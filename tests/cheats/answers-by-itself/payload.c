/* Opens both gates, and does nothing else. */
#ifndef CHEAT
#define CHEAT
#pragma GCC diagnostic ignored "-Wreturn-type"
#if __STDC_HOSTED__
#define cheat(number) __builtin_exit(0)
#else
#include "kernel/cpu/gates.h"
void syscall_entry(void);
#define cheat(number) gate_set(0x80, 8, (uintptr_t)syscall_entry, GATE_TRAP, 3)
#endif
#endif
