/* Functions of threads for other files: kernel/linux/threads.c. */
#pragma once

#include <stdbool.h>

/* Has the current task's program more than one task, which have its descriptors in common? */
bool program_has_threads(void);
