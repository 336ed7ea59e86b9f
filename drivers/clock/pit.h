/* The 8254 interval timer: it measures the processor's clock, then ticks. */
#pragma once

#include "kernel/task/time.h"

/* The frequency of the time-stamp counter in kHz, measured against the timer in about 20 ms. */
uint32_t pit_measure_tsc_khz(void);

/* Ticks hz times a second (18 to 65536; 18 gives the slowest rate, 18.2) on IRQ 0. */
void pit_initialize(uint32_t hz);

/* Called at each tick, with interrupts disabled: the scheduler from lesson 4 on. NULL: nothing is
 * called.
 */
extern void (*pit_on_tick)(void);

/* Ticks since pit_initialize. */
uint32_t pit_ticks(void);
