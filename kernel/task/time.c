/* The kernel's clock: time-stamp counter to nanoseconds, by one multiplication. */
#include "kernel/task/time.h"

#include "kernel/lib/divide.h"

#define SHIFT 22 /* ns = ticks * multiplier >> SHIFT; fits for every counter above 1 MHz */

static uint32_t khz;
static uint32_t multiplier;
static uint64_t origin;
static uint64_t wall_origin; /* what the wall's clock showed then, in nanoseconds */

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

uint64_t time_of_stamps(uint64_t stamps)
{
	uint64_t low = (stamps & 0xffffffff) * multiplier >> SHIFT;
	uint64_t high = (stamps >> 32) * multiplier << (32 - SHIFT);

	return high + low;
}

uint64_t time_ns(void)
{
	return khz ? time_of_stamps(time_stamp() - origin) : 0;
}

uint64_t time_wall_ns(void)
{
	return wall_origin + time_ns();
}

void time_set_wall(uint32_t seconds)
{
	wall_origin = seconds * 1000000000ull - time_ns();
}
