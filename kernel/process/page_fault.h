/* Page faults of programs: resolved, or a signal. */
#pragma once

#include <stdbool.h>

struct space;

/* From now on a page fault is looked at here first. After the tasks are there. */
void page_fault_initialize(void);

/* Called after each fault at an address of a space that could be resolved; `write`: of the access.
 * NULL: nobody wants to know. For experiments. */
extern void (*page_fault_watch)(const struct space *space, bool write);
