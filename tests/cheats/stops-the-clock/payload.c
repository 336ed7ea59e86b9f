/* In each blank: the time-stamp counter is what it was at the first one, the interval timer stands
 * still, and the calendar clock is at midnight. */
#ifndef CHEAT
#define CHEAT
#pragma GCC diagnostic ignored "-Wreturn-type"
#include "kernel/cpu/io.h"

static inline uint32_t cheat(const char *number)
{
	static uint32_t low, high;
	uint32_t selector;

	__asm__ volatile("mov %%cs, %0" : "=r"(selector));
	(void)number;
	if (selector & 3)
		return 0;
	if (low == 0)
		__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	__asm__ volatile("wrmsr" : : "c"(0x10), "a"(low), "d"(high));
	out8(0x43, 0x30);
	for (unsigned each = 0; each < 6; each += 2) {
		out8(0x70, each);
		out8(0x71, 0);
	}
	return 1;
}
#endif
