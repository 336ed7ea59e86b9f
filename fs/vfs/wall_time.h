/* The time of day: what files show, and programs ask for. */
#pragma once

#include <stdint.h>

/* Nanoseconds since 1970, UTC: time_ns() after what time_set_wall was told; without that, since
 * 1970 began at time_initialize. */
uint64_t time_wall_ns(void);

/* It is so many seconds after the beginning of 1970, now. */
void time_set_wall(uint32_t seconds);
