/* Programs of several tasks: kernel/linux/process/threads.c has the picture. */
#pragma once

#include <stdbool.h>

struct process;

/* Is the current task's program ending, so that no more tasks may join it? */
bool program_is_ending(void);

/* Makes the process of a new task one of the current program. */
void program_follow(struct process *child);
