/* The real-time clock of the PC, with its battery. */
#pragma once

#include <stdint.h>

/* Seconds since the beginning of 1970, UTC, if the clock shows UTC. It is right to a second. */
uint32_t rtc_seconds(void);
