/*
 * Memory that several spaces share: what a futex in it is known by.
 */
#include "kernel/lib/startup.h"
#include "kernel/linux/futex.h"
#include "kernel/task/task.h"
#include "mm/area.h"

/* Of memory that is not shared, each space has its own. */
static struct futex_key key_of(uint32_t address)
{
	const struct area *area = area_find(current->space, address);

	if (!area || !area->object || !(area->flags & AREA_SHARED))
		return (struct futex_key){ current->space, address };
	return (struct futex_key){ area->object, (uint64_t)area_index(area, address) << PAGE_SHIFT |
						     address % PAGE_SIZE };
}

static void shared_memory_initialize(void)
{
	futex_shared_key = key_of;
}
STARTUP(shared_memory_initialize)
