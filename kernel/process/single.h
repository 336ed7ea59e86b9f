/* One task at a time: how the kernel of lesson 3 runs a program. */
#pragma once

#include "kernel/cpu/trap.h"

/* Makes the task that runs programs. Panics without memory. */
void task_single_initialize(void);

/* Runs what exec has put into the frame, until it ends. Returns its status, as wait4 tells it. */
int task_single_run(const struct trap_frame *frame);
