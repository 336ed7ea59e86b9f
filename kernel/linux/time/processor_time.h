/* Limits of processor time, and timers that count it. */
#pragma once

#define LIMIT_CPU 0 /* setrlimit's number of it */

/* Starts to check them in every tick. NULL before lesson 4, where ticks are not charged to tasks.
 */
extern void (*watch_processor_time)(void);
