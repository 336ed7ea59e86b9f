/* The time of day, for files and for programs that ask. */
#pragma once

#include <stdint.h>

/* Nanoseconds since 1970, UTC. */
uint64_t time_wall_ns(void);

/* Sets it. The PC's own clock stays as it is. */
void time_wall_set(uint64_t ns);
