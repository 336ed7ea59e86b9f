/* The kernel's clock. */
#pragma once

#include <stdint.h>

#define TICKS_PER_SECOND 100 /* of the timer: the clock of the scheduler */

/* Nanoseconds since time_initialize; never goes back. Before it: 0. */
uint64_t time_ns(void);

/* Starts the clock: the time-stamp counter, at its measured frequency in kHz (1 to 2^32 - 1). */
void time_initialize(uint32_t tsc_khz);

/* The frequency that time_initialize was given, in kHz; 0 before it. */
uint32_t time_tsc_khz(void);

/* TSC cycles in a tick. */
static inline uint32_t time_cycles_per_tick(void)
{
	return time_tsc_khz() * (1000 / TICKS_PER_SECOND);
}

/* TSC cycles in nanoseconds. */
uint64_t time_of_cycles(uint64_t cycles);

/* The raw time-stamp counter. */
static inline uint64_t time_stamp(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}
