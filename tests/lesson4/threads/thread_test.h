/*
 * What code shares that a test puts into a stopped kernel: it begins at `begin` with the address of
 * a function in EAX, in the kernel's first thread, and ends at `finished`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/interrupts.h"
#include "kernel/io.h"
#include "kernel/sched.h"
#include "kernel/task.h"
#include "kernel/task_switch.h"
#include "kernel/time.h"

#define QUESTIONS 64
#define ANSWERS	  4096

extern uint32_t questions[QUESTIONS]; /* from the test */
extern uint32_t answers[ANSWERS];     /* for the test */
extern uint32_t answer_count;

/* Adds an answer; what does not fit is left out. */
void answer(uint32_t word);

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

/* Keeps the processor for so many time stamps. */
void busy(uint32_t stamps);
