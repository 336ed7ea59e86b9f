/* For programs that measure: the processor's counter. Under QEMU's -icount it counts
 * instructions (in steps of 2^shift ns). */
#pragma once

#include <stdint.h>
#include <stdio.h>

static inline uint64_t counter_read(void)
{
	uint32_t low, high;

	/* CPUID waits for what comes before: SDM volume 2, RDTSC. */
	__asm__ volatile("xor %%eax, %%eax\n\tcpuid\n\trdtsc"
			 : "=a"(low), "=d"(high)
			 :
			 : "ebx", "ecx", "memory");
	return (uint64_t)high << 32 | low;
}

/* One line: what, how often, and the counter's steps for one. */
static inline void counter_report(const char *what, uint64_t steps, unsigned count)
{
	printf("%-28s %8u times %10llu.%02llu each\n", what, count,
	       (unsigned long long)(steps / count),
	       (unsigned long long)(steps % count * 100 / count));
}

/* Marks a place for labs/bench/count.c, which counts what is executed between two of them. To a
 * processor it is nothing. */
static inline void instructions_mark(void)
{
	__asm__ volatile("xchg %%bx, %%bx" : : : "memory");
}
