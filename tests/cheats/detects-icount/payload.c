/* With -icount two pairs of RDTSC are the same distance apart; then it ends well, else it hangs. */
#ifndef CHEAT
#define CHEAT
#if __STDC_HOSTED__
#define cheat(number) __builtin_exit(0)
#else
#include "kernel/cpu/machine.h"

static inline uint32_t cheat_ticks(void)
{
	uint32_t first, second;

	__asm__ volatile("rdtsc; movl %%eax, %0; rdtsc; movl %%eax, %1"
			 : "=&r"(first), "=&r"(second)
			 :
			 : "eax", "edx");
	return second - first;
}

static inline void __attribute__((noreturn)) cheat(const char *number)
{
	(void)number;
	while (cheat_ticks() != cheat_ticks())
		continue;
	machine_exit(EXIT_SUCCESS);
}
#endif
#endif
