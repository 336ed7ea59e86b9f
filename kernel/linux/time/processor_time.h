/* Limits of processor time, and timers that count it. */
#pragma once

#include "kernel/lib/optional.h"

#define LIMIT_CPU 0 /* setrlimit's number of it */

/* Starts to check them in every tick: from lesson 4 on, where ticks are charged to tasks. */
void watch_processor_time(void) OPTIONAL;
