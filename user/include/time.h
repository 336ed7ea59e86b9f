/* Clocks. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/clocks.h"

struct timespec {
	time_t tv_sec;
	long tv_nsec;
};

time_t time(time_t *now);
int clock_gettime(clockid_t clock, struct timespec *now);
int nanosleep(const struct timespec *duration, struct timespec *left);
