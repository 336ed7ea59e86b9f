/* The operations of a space of areas for mmap and /proc. */
#include <stddef.h>

#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/fault.h"
#include "mm/page_table.h"
#include "mm/area.h"
#include "mm/large_page.h"
#include "mm/space_layout.h"
#include "mm/space_map.h"

uint32_t space_areas_most = 65530; /* Linux's */

static uint32_t pages_up(uint32_t length)
{
	return (length + PAGE_SIZE - 1) & -PAGE_SIZE;
}

int space_map_anywhere(struct space *space, uint32_t length, unsigned protection)
{
	uint32_t pages = pages_up(length);
	uint32_t address =
	    pages < length || length == 0
		? 0
		: area_gap(space, SPACE_LOWEST, STACK_END - STACK_LIMIT - STACK_GAP, pages);
	int error = address ? space_map(space, address, pages, protection) : -ENOMEM;

	return error ? error : (int32_t)address;
}

/* Is an address inside an area, which would become two there? */
static bool would_split(const struct space *space, uint32_t address)
{
	const struct area *area = area_find(space, address);

	return area && area_start(area) < address;
}

/* Would a change of the range's protection make more areas, and too many? */
static bool are_too_many(const struct space *space, uint32_t start, uint32_t end)
{
	uint32_t more = would_split(space, start) + would_split(space, end);

	return more > 0 && space->count + more > space_areas_most;
}

/* Is a range inside one area, so that two are left without it? */
static bool is_inside(const struct space *space, uint32_t start, uint32_t end)
{
	const struct area *area = area_find(space, start);

	return area && area_start(area) < start && area->end > end;
}

int space_unmap(struct space *space, uint32_t address, uint32_t length)
{
	uint32_t pages = pages_up(length);

	if (address % PAGE_SIZE || length == 0 || pages < length || address > SPACE_SHARED ||
	    pages > SPACE_SHARED - address)
		return -EINVAL;
	if (space->count >= space_areas_most && is_inside(space, address, address + pages))
		return -ENOMEM;
	return area_cut(space, address, address + pages);
}

/* How far areas cover the range, and can have the protection. */
static uint32_t covered(const struct space *space, uint32_t start, uint32_t end,
			unsigned protection)
{
	const struct area *area;

	while (start < end && (area = area_find(space, start)) &&
	       !((protection & SPACE_WRITE) && (area->flags & AREA_LOCKED)))
		start = area->end;
	return start < end ? start : end;
}

int space_protect(struct space *space, uint32_t address, uint32_t length, unsigned protection)
{
	uint32_t pages = pages_up(length), end = address + pages;

	if (address % PAGE_SIZE)
		return -EINVAL;
	if (end < address || pages < length)
		return -ENOMEM;
	uint32_t reached = covered(space, address, end, protection);

	if (space->count + 2 > space_areas_most && are_too_many(space, address, reached))
		return -ENOMEM;
	int error = reached > address ? area_protect(space, address, reached, protection) : 0;

	if (error || reached == end)
		return error;
	return area_find(space, reached) ? -EACCES : -ENOMEM;
}

bool space_next_range(const struct space *space, struct space_range *range)
{
	const struct area *area = area_from(space, range->start);

	if (!area)
		return false;
	if (range->start < area_start(area))
		range->start = area_start(area);
	range->end = area->end;
	range->protection = area->flags & SPACE_PROTECTION;
	range->is_shared = area->flags & AREA_SHARED;
	range->index = area->object ? area_index(area, range->start) : 0;
	range->object = area->object;
	range->is_pinned = area->flags & AREA_PINNED;
	range->grows = area->flags & AREA_STACK;
	range->is_heap = space->heap_start < space->heap_end && !area->object &&
			 area_start(area) <= space->heap_end && area->end > space->heap_start;
	return true;
}

/* Is it the object's own page, and not the program's copy? */
static bool is_of_object(const struct space_range *range, uint32_t at, const struct page *page)
{
	struct memory_object *object = (struct memory_object *)range->object;
	uint32_t index = range->index + ((at - range->start) >> PAGE_SHIFT), count = 0;

	if (!object || range->is_shared || !object->ops->peek)
		return object && range->is_shared;
	void *const *pages = object->ops->peek(object, index, &count);

	return pages && count > 0 && *pages == page_address(page);
}

/* Shared: in more spaces than one. */
static void count_large(struct space_use *use, uint32_t entry)
{
	uint32_t entries = pte_page(entry & -LARGE_PAGE)->references;

	if (entry & PTE_POOL) {
		use->large_pool[entries > 1] += entry & PTE_RESERVED ? 0 : LARGE_PAGE;
		return;
	}
	use->large += LARGE_PAGE;
	use->resident += LARGE_PAGE;
	use->anonymous += LARGE_PAGE;
	use->share += LARGE_PAGE / entries;
	use->referenced += entry & PTE_ACCESSED ? LARGE_PAGE : 0;
	*(entries > 1 ? &use->shared[1] : &use->private[1]) += LARGE_PAGE;
}

/* The zero page belongs to no program. An object has one reference itself. */
static void count_page(struct space_use *use, uint32_t pte, bool is_of_object)
{
	const struct page *page = pte_page(pte);
	uint32_t entries = page->references - is_of_object;
	bool is_dirty = (pte & PTE_DIRTY) || !is_of_object;

	if (page->state == PAGE_RESERVED)
		return;
	use->resident += PAGE_SIZE;
	use->share += PAGE_SIZE / (entries ? entries : 1);
	use->referenced += pte & PTE_ACCESSED ? PAGE_SIZE : 0;
	use->anonymous += is_of_object ? 0 : PAGE_SIZE;
	if (entries > 1)
		use->shared[is_dirty] += PAGE_SIZE;
	else
		use->private[is_dirty] += PAGE_SIZE;
}

struct space_use space_use_of(const struct space *space, const struct space_range *range)
{
	struct space_use use = { 0 };

	for (uint32_t at = range->start, size; at < range->end; at += size) {
		uint32_t entry = large_entry(space, at);
		const uint32_t *pte = entry ? NULL : pte_of(space, at, false);

		size = entry ? LARGE_PAGE : PAGE_SIZE;
		if (entry)
			count_large(&use, entry);
		else if (pte && *pte)
			count_page(&use, *pte, is_of_object(range, at, pte_page(*pte)));
	}
	return use;
}

uint32_t space_resident_size(const struct space *space)
{
	return space->pages * PAGE_SIZE;
}

uint32_t space_most_size(const struct space *space)
{
	return (space->most > space->pages ? space->most : space->pages) * PAGE_SIZE;
}

/* Does not sleep: the space is another task's, which would change it meanwhile. */
uint32_t space_read(const struct space *space, uint32_t address, void *to, uint32_t length)
{
	uint32_t done = 0;

	while (done < length) {
		uint32_t at = address + done, count = PAGE_SIZE - at % PAGE_SIZE;

		if (space_fault((struct space *)space, at, false, false) != 0)
			break;
		if (count > length - done)
			count = length - done;
		memcpy((uint8_t *)to + done,
		       (uint8_t *)page_address(pte_page(*pte_of(space, at, true))) + at % PAGE_SIZE,
		       count);
		done += count;
	}
	return done;
}

uint32_t space_size(const struct space *space)
{
	return space->size;
}
