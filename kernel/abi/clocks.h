/* Clocks that only Linux's own programs ask for, their times, and a process's resource usage. */
#pragma once

#include "kernel/abi/time.h"

#define CLOCK_REALTIME		 0
#define CLOCK_PROCESS_CPUTIME_ID 2
#define CLOCK_THREAD_CPUTIME_ID	 3
#define CLOCK_MONOTONIC_RAW	 4
#define CLOCK_REALTIME_COARSE	 5
#define CLOCK_MONOTONIC_COARSE	 6
#define CLOCK_BOOTTIME		 7
#define CLOCK_TAI		 11

#define TIMER_ABSTIME 1u
#define ITIMER_REAL   0
#define ITIMER_PROF   2

/* Of the calls whose names end in 64. */
struct linux_timespec64 {
	int64_t seconds;
	int64_t nanoseconds;
};

struct linux_timeval {
	int32_t seconds;
	int32_t microseconds;
};

struct linux_usage {
	struct linux_timeval user, system;
	int32_t largest_size, sizes[3], minor_faults, major_faults, swaps;
	int32_t blocks_in, blocks_out, messages_out, messages_in, signals;
	int32_t voluntary_switches, involuntary_switches;
};

#define USAGE_SELF     0
#define USAGE_CHILDREN (-1)
#define USAGE_THREAD   1
