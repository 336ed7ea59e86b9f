/* Time as programs see it: Linux's structures for i386. More clocks are in kernel/abi/clocks.h. */
#pragma once

#include <stdint.h>

#define NANOSECONDS_PER_SECOND 1000000000u

#define CLOCK_MONOTONIC 1

struct linux_timespec {
	int32_t seconds;
	int32_t nanoseconds;
};

/* In ticks, of which there are 100 a second. */
struct linux_times {
	int32_t user, system, children_user, children_system;
};
