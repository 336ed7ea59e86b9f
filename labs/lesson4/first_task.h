/* The first task, and how the scheduler starts. */
#pragma once

#include "kernel/lib/optional.h"

/* Makes the current flow of control the idle task, chooses the scheduling class that the host's
 * settings name, and connects the timer. Interrupts are disabled. Panics on a wrong setting.
 */
void tasks_initialize(void);

/* Called by the first task before anything else. It may sleep. */
void first_task_prepare(void) OPTIONAL;

/* The first task, for kthread_create: does what the host's settings ask for, and becomes the first
 * program if they ask for nothing. */
void first_task(void *argument);
