/*
 * The operations of a space of areas for mmap and /proc.
 *
 *	looking		space_gap, space_next_range, space_peek, space_use_of, space_read
 *	changing	space_extend, space_move, space_forget, space_unmap, space_protect
 *
 * What changes areas or unmaps pages may sleep (mm/area.h), so none of these keeps an area over
 * such a call. /proc looks at spaces of other tasks: what it uses does not sleep.
 */

#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/fault.h"
#include "mm/page_alloc.h"
#include "mm/page_table.h"
#include "mm/area.h"
#include "mm/large_page.h"
#include "mm/space_layout.h"
#include "mm/space_map.h"

uint32_t space_areas_most = 65530; /* Linux's */
bool space_some_grow;

/* Not directly below what may grow downwards. */
uint32_t space_gap(const struct space *space, uint32_t length)
{
	uint32_t address = length ? area_gap(space, SPACE_LOWEST, MAP_HIGHEST, length) : 0;
	const struct area *above;

	while (space_some_grow && address && (above = area_find(space, address + length)) &&
	       (above->flags & AREA_STACK))
		address =
		    area_start(above) < STACK_GAP
			? 0
			: area_gap(space, SPACE_LOWEST, area_start(above) - STACK_GAP, length);
	return address;
}

/* ---- mremap ---- */

/* Puts an area at [start, end) that goes on at `from` of another one: the same kind, and pages. */
static int put_like(struct space *space, const struct area *area, uint32_t from, uint32_t start,
		    uint32_t end)
{
	struct area form = *area;

	form.index = area_index(area, from);
	return area_put(space, start, end, &form);
}

int space_extend(struct space *space, uint32_t end, uint32_t more)
{
	return put_like(space, area_find(space, end - 1), end, end, end + more);
}

/* An entry that may move alone: a large page is split. NULL: there is none. */
static uint32_t *small_entry(const struct space *space, uint32_t address)
{
	return pte_of(space, address, large_entry(space, address) != 0);
}

/* The pages move: their entries are written elsewhere. Returns how far it came, in bytes: without
 * memory for a table not to the end. */
static uint32_t move_pages(struct space *space, uint32_t from, uint32_t to, uint32_t length)
{
	for (uint32_t at = 0; at < length; at += PAGE_SIZE) {
		uint32_t *old = small_entry(space, from + at);

		if (!old || !*old)
			continue;
		uint32_t *new = pte_of(space, to + at, true);

		if (!new)
			return at;
		old = pte_of(space, from + at, false); /* it may have been given back meanwhile */
		if (!old || !*old)
			continue;
		pte_set(space, to + at, new, *old);
		pte_set(space, from + at, old, 0);
	}
	return length;
}

/* The area at `to` is there before a page moves, and the old one goes last. On failure the pages
 * move back: for that there are tables, since those that became empty are kept. */
int space_move(struct space *space, uint32_t from, uint32_t old_length, uint32_t to,
	       uint32_t length)
{
	if (put_like(space, area_find(space, from), from, to, to + length) != 0)
		return -ENOMEM;
	uint32_t moved = move_pages(space, from, to, old_length);

	if (moved == old_length && area_cut(space, from, from + old_length) == 0)
		return to;
	move_pages(space, to, from, moved);
	area_cut(space, to, to + length);
	return -ENOMEM;
}

/* A private copy of an object's page goes, too: the next touch reads the object. */
void space_forget(struct space *space, uint32_t start, uint32_t end)
{
	page_unmap_range(space, start, end);
}

/* ---- munmap and mprotect ---- */

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

/* The largest number of areas binds only a cut that makes one more. */
int space_unmap(struct space *space, uint32_t address, uint32_t length)
{
	uint32_t pages = whole_pages(length);

	if (address % PAGE_SIZE || length == 0 || pages < length || address > SPACE_SHARED ||
	    pages > SPACE_SHARED - address)
		return -EINVAL;
	if (space->count >= space_areas_most && would_split(space, address) &&
	    area_find(space, address)->end > address + pages)
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

/* As far as areas cover the range: what is before a hole, or before an area that may not be
 * written, is changed, as on Linux. */
int space_protect(struct space *space, uint32_t address, uint32_t length, unsigned protection)
{
	uint32_t pages = whole_pages(length), end = address + pages;

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

_Static_assert(RANGE_SHARED == AREA_SHARED && RANGE_PINNED == AREA_PINNED, "ranges are areas");

bool space_next_range(const struct space *space, struct space_range *range)
{
	const struct area *area = area_find(space, range->start);

	if (!area && !(area = area_from(space, range->start)))
		return false;
	if (range->start < area_start(area))
		range->start = area_start(area);
	range->end = area->end;
	range->flags = area->flags;
	range->object = area->object;
	range->index = area->object ? area_index(area, range->start) : 0;
	return true;
}

void *space_peek(const struct space_range *range, uint32_t address)
{
	struct memory_object *object = range->object;
	uint32_t count = 0;

	if (!object || !object->ops->peek)
		return NULL;
	void *const *pages = object->ops->peek(
	    object, range->index + ((address - range->start) >> PAGE_SHIFT), &count);

	return pages && count > 0 ? *pages : NULL;
}

/* Is it the object's own page, and not the program's copy? */
static bool is_of_object(const struct space_range *range, uint32_t at, const struct page *page)
{
	return range->object &&
	       ((range->flags & AREA_SHARED) || space_peek(range, at) == page_address(page));
}

/* What one entry maps: shared, if `entries` of all spaces do. */
static void count_bytes(struct space_use *use, uint32_t bytes, uint32_t entry, uint32_t entries,
			bool is_anonymous)
{
	bool is_dirty = (entry & PTE_DIRTY) || is_anonymous;

	use->resident += bytes;
	use->share += bytes / (entries ?: 1);
	use->referenced += entry & PTE_ACCESSED ? bytes : 0;
	use->anonymous += is_anonymous ? bytes : 0;
	*(entries > 1 ? &use->shared[is_dirty] : &use->private[is_dirty]) += bytes;
}

static void count_large(struct space_use *use, uint32_t entry)
{
	uint32_t entries = pte_page(entry & -LARGE_PAGE)->references;

	if (entry & PTE_POOL) {
		use->large_pool[entries > 1] += entry & PTE_RESERVED ? 0 : LARGE_PAGE;
		return;
	}
	use->large += LARGE_PAGE;
	count_bytes(use, LARGE_PAGE, entry, entries, true);
}

/* The zero page belongs to no program. An object has one reference itself. */
static void count_page(struct space_use *use, uint32_t pte, bool is_of_object)
{
	const struct page *page = pte_page(pte);

	if (page->state != PAGE_RESERVED)
		count_bytes(use, PAGE_SIZE, pte, page->references - is_of_object, !is_of_object);
}

/* Entries of page tables are looked at one by one; 4 MiB without a table take 1,024 short steps. */
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

struct space_sizes space_sizes(const struct space *space)
{
	uint32_t most = space->most > space->pages ? space->most : space->pages;

	return (struct space_sizes){ space->size, space->pages * PAGE_SIZE, most * PAGE_SIZE };
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
