/* The time of day: what files show, and programs ask for. */
#pragma once

#include <stdint.h>

/* Nanoseconds since 1970, UTC. */
uint64_t time_wall_ns(void);
