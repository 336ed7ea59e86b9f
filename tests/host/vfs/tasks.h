/* Tasks that take turns wherever one may sleep: which one runs is the seed's choice. */
#pragma once

#include <stdint.h>

#define TASKS 2u

/* Runs each(0) to each(TASKS - 1) at the same time, until all have returned. */
void tasks_run(void (*each)(unsigned task), uint32_t seed);

/* A place where the task that runs may sleep. Nothing outside of tasks_run. */
void tasks_yield(void);
