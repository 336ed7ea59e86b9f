/* Memory that is to stay: mlock, mlockall, MAP_LOCKED, MAP_POPULATE. */
#pragma once

#include "kernel/task/sched.h"
#include "mm/space_layout.h"

struct space;

/* Bits of a space's `pinning`. */
#define PINS_NEW    1u /* MCL_FUTURE: what is mapped from now on is pinned, too */
#define PINS_LAZILY 2u /* MCL_ONFAULT: and its pages come when they are touched */

/* What pin_new does for a space that wants it, or a mapping that does. */
void pin_areas(uint32_t start, uint32_t end, bool pinned, bool populated);

/* What mmap and brk do with [start, end), which was just mapped in the current task's space: pins
 * it, after MCL_FUTURE or if `pinned`, and populates it, then or if `populated`. */
static inline void pin_new(uint32_t start, uint32_t end, bool pinned, bool populated)
{
	if (pinned || populated || current->space->pinning)
		pin_areas(start, end, pinned, populated);
}
