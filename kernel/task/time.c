/*
 * The kernel's clock: time-stamp counter to nanoseconds, by one multiplication.
 *
 * A division of 64 bits costs 40 cycles and a call, and the clock is read at every task switch. So
 * the factor is computed once, with 22 binary places: ns = cycles * multiplier >> 22. At 2.5 GHz, a
 * cycle is 0.4 ns:
 *
 *	khz 2500000	multiplier = 1000000 * 2^22 / 2500000 = 1677721
 *	cycles 10^9	10^9 * 1677721 >> 22 = 399999856 ns		0.4 s - 0.00004 %
 *
 * The product needs 96 bits, so the two halves of the TSC are multiplied separately. The
 * counter must run at a constant rate and be the same for all code: true for QEMU and for
 * processors since 2008 (Intel SDM volume 3, "time-stamp counter"). Any context.
 */
#include "kernel/task/time.h"

#include "kernel/lib/divide.h"

#define SHIFT 22 /* ns = ticks * multiplier >> SHIFT; fits for every counter above 1 MHz */

static uint32_t khz;
static uint32_t multiplier;
static uint64_t origin;

/* At boot, with interrupts disabled: nobody may read the clock between the factor and the origin.
 */
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

/* The low half's product has at most 64 bits; the high half's is shifted the other way. */
uint64_t time_of_cycles(uint64_t cycles)
{
	uint64_t low = (cycles & 0xffffffff) * multiplier >> SHIFT;
	uint64_t high = (cycles >> 32) * multiplier << (32 - SHIFT);

	return high + low;
}

/* Before time_initialize the clock shows 0, so that early code may ask. */
uint64_t time_ns(void)
{
	return khz ? time_of_cycles(time_stamp() - origin) : 0;
}
