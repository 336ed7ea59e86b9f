/* Page faults of programs: mended, or a signal. */
#pragma once

/* From now on a page fault is looked at here first. After the tasks are there. */
void page_fault_initialize(void);
