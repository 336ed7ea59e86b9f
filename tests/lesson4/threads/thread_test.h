/*
 * What code shares that a test puts into a stopped kernel: it begins at `begin` with the address of
 * a function in EAX, in the kernel's first thread, and ends at `finished`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/cpu/interrupts.h"
#include "kernel/cpu/io.h"
#include "kernel/task/sched.h"
#include "kernel/task/task.h"
#include "kernel/task/time.h"
#include "kernel/task/timer.h"
#include "kernel/task/wait.h"

#define QUESTIONS 64
#define ANSWERS	  4096
#define TICK_NS	  10000000ull /* as the kernel counts time */

extern uint32_t questions[QUESTIONS]; /* from the test */
extern uint32_t answers[ANSWERS];     /* for the test */
extern uint32_t answer_count;

/* In C what `begin` calls, with what it finds in EAX. */
void begin_test(void (*function)(void)) __attribute__((regparm(1)));

/* Adds an answer; what does not fit is left out. */
void answer(uint32_t word);

/* In a function that returns nothing: ends it if this does not hold, and answers the line. */
#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			answer(__LINE__);                                                          \
			return;                                                                    \
		}                                                                                  \
	} while (0)

/* No interrupt comes any more: threads change only where they say so. */
static inline void quiet(void)
{
	out8(0x21, 0xff);
	out8(0xa1, 0xff);
}

/* A thread that must be there. */
struct task *begin_thread(void (*function)(void *argument), uintptr_t argument);

/* Yields until the number of tasks is back at what it was. */
void await_threads(uint32_t count);

/* Keeps the processor for this many TSC cycles. */
void busy(uint32_t stamps);

/* Keeps the processor until the timer has interrupted it this many times. */
void busy_ticks(uint32_t ticks);

/* Sleeps for this many ticks, even if it is woken earlier. */
void sleep_ticks(uint32_t ticks);

/* A thread that uses the processor for ever, as nice as this. */
struct task *begin_spinner(int nice);

/* Answers for how many TSC cycles the task has had the processor: the lower half, the upper. */
void answer_total(const struct task *task);

/* From here on under feedback queues. The caller is the least urgent one: whenever it runs, all
 * others wait for something. */
void begin_mlfq(void);

/* A thread that begins at the level of this niceness. */
struct task *begin_nice(void (*function)(void *argument), uintptr_t argument, int nice);
