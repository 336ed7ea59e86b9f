/* Page faults of programs: they are resolved, or become a signal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct space;

/* From now on page faults are handled here first. Call it after the scheduler has been initialized.
 */
void page_fault_initialize(void);

/* Called after each fault in a space that was resolved; `write`: the access was a write. NULL:
 * nothing is called. For experiments. */
extern void (*page_fault_watch)(const struct space *space, bool write);

/* How many page faults of all programs were resolved. */
extern uint32_t page_faults;
