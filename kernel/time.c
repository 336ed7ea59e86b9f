/* The kernel's clock: time-stamp counter to nanoseconds, by one multiplication. */
#include "kernel/time.h"

#include "kernel/divide.h"

#define SHIFT 22 /* ns = ticks * multiplier >> SHIFT; fits for every counter above 1 MHz */

static uint32_t khz;
static uint32_t multiplier;
static uint64_t origin;

void time_initialize(uint32_t tsc_khz)
{
	khz = tsc_khz;
	multiplier = divide64(1000000ull << SHIFT, tsc_khz, 0);
	origin = time_stamp();
}

uint32_t time_tsc_khz(void)
{
	return khz;
}

uint64_t time_ns(void)
{
	uint64_t ticks = time_stamp() - origin;
	uint64_t low = (ticks & 0xffffffff) * multiplier >> SHIFT;
	uint64_t high = (ticks >> 32) * multiplier << (32 - SHIFT);

	return khz ? high + low : 0;
}

void time_delay_ns(uint32_t ns)
{
	uint64_t start = time_ns();

	while (time_ns() - start < ns)
		;
}
