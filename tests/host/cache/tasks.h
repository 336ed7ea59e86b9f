/* Tasks for the host: threads, of which one runs at a time, and which gives up the processor only
 * where a task of the kernel may sleep. Who is next is random, from a seed. */
#pragma once

#include <stdint.h>

#include "kernel/lib/random.h"

#define TASKS 6u

extern struct random chance;

/* Runs the function in TASKS tasks, and returns when all have ended. */
void run_tasks(void (*function)(uint32_t task));

/* Somebody else may run now. */
void sleep_a_while(void);
