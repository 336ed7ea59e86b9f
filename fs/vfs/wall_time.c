/*
 * The time of day: the kernel's clock, and what the clock on the wall showed when it began.
 *
 * The kernel's clock runs on alone afterwards, so the two drift apart as a PC's clocks do. Any
 * context, once somebody has told the time.
 */
#include "fs/vfs/wall_time.h"

#include "kernel/task/time.h"

static uint64_t wall_origin; /* what the wall's clock showed at time_initialize, in nanoseconds */

uint64_t time_wall_ns(void)
{
	return wall_origin + time_ns();
}

void time_set_wall(uint32_t seconds)
{
	wall_origin = seconds * 1000000000ull - time_ns();
}
