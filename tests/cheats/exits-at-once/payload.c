/* Ends the run at once, by each way out. */
#ifndef CHEAT
#define CHEAT
#if __STDC_HOSTED__
#define cheat(number) __builtin_exit(0)
#else
#include "kernel/cpu/io.h"

static inline void __attribute__((noreturn)) cheat(const char *number)
{
	(void)number;
	out8(0xf4, 0x10);
	out16(0x604, 0x2000);
	for (;;)
		__asm__ volatile("hlt");
}
#endif
#endif
