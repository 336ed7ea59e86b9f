/* Limits of processor time, and timers that count it. */
#pragma once

#define LIMIT_CPU 0 /* setrlimit's number of it */

/* Begins to look at them in every tick. NULL before lesson 4, where no tick charges anybody. */
extern void (*watch_processor_time)(void);
