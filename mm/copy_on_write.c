/*
 * Copy on write: fork copies areas and page table entries, but no page.
 *
 *	before fork	parent: writable --> page, 1 reference
 *	fork		parent: read-only --> page, 2 references <-- read-only: child
 *	child writes	parent: read-only --> page, 1		     copy, 1 <-- writable: child
 *	parent writes	parent: writable --> page, 1
 *
 * The first task to write pays for the copy; a task that is left alone with a page pays only for
 * the fault. This is a bet: that most pages are never written to after fork, because the child
 * calls exec.
 *
 * Pages of an object are not even mapped for the child: it gets them by a fault, as its parent did.
 */
#include "mm/copy_on_write.h"

#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"
#include "mm/page_table.h"
#include "mm/space_layout.h"

struct page *page_copy(const struct page *page)
{
	void *copy = page_alloc(0);

	if (!copy)
		return NULL;
	memcpy(copy, page_address(page), PAGE_SIZE);
	return page_of(copy);
}

/* EXERCISE 6.4 (copy on write):

   - copy_on_write: see mm/copy_on_write.h. The entry keeps its page if nobody else uses it;
     otherwise it gets a copy. A page of a shared area is never copied: its object is told that it
     is about to be written to. An area with copies of its object's pages is AREA_COPIED.
   - space_copy: a space with the same areas and the same contents; NULL without memory, and then
     nothing is left of it.
   - given: page_copy; space_allocate, a space without areas (mm/space_layout.h).

   Pitfalls: the zero page has no count of its own. Which comes first: the new entry, or the release
   of the old page? Asking for memory may give pages of files back, and an object may sleep while
   its file is cut: a page that nobody holds is gone then, and so is its entry. Or another task of
   the space unmaps the area meanwhile, or forbids writing: then nothing becomes writable. After
   the copy the old space may not write without a fault either; and the TLB may remember that it
   could. The heap's limits belong to a space, too. */
/* SOLUTION 6.4 { */
/* A page to map in place of this one, with a reference for its entry. */
static int writable_page(struct area *area, uint32_t address, struct page *page, struct page **own)
{
	struct memory_object *object = area->object;

	if (area->flags & AREA_SHARED) {
		object->ops->hold(object);
		int error = object->ops->page(object, area_index(area, address), true, own);

		object->ops->release(object);
		return error;
	}
	area->flags |= AREA_COPIED;
	*own = page_copy(page);
	return *own ? 0 : -ENOMEM;
}

static bool may_write(const struct space *space, uint32_t address)
{
	const struct area *area = area_find(space, address);

	return area && (area->flags & SPACE_WRITE);
}

/* The page is held until the end, so that it is not reclaimed meanwhile. But its file may be cut,
 * or its area may lose the right to write: then the access faults again. */
int copy_on_write(struct space *space, struct area *area, uint32_t address, uint32_t *pte)
{
	struct page *page = pte_page(*pte), *own;

	if (!(area->flags & AREA_SHARED) && page->state != PAGE_RESERVED && page->references == 1) {
		pte_set(space, address, pte, *pte | PTE_PRESENT | PTE_WRITE);
		return 0;
	}
	page_hold(page);
	int error = writable_page(area, address, page, &own);

	pte = may_write(space, address) ? pte_of(space, address, false) : NULL;
	if (!error && pte && *pte && pte_page(*pte) == page) {
		pte_set(space, address, pte, pte_for(own, true));
		own = page;
	}
	if (!error)
		page_release(own);
	page_release(page);
	return error;
}

/* Does the program have pages in the area that nobody else can give it? What an object has is found
 * there when it is touched. */
static bool has_own_pages(const struct area *area)
{
	return !area->object || (area->flags & AREA_COPIED);
}

static int copy_areas(struct space *copy, struct space *space)
{
	const struct area *area = area_from(space, 0);
	int error = 0;

	for (; area && !error; area = area_from(space, area->end)) {
		error = area_copy(copy, area);
		if (!error && has_own_pages(area))
			error = page_copy_range(copy, space, area_start(area), area->end);
	}
	return error;
}

struct space *space_copy(struct space *space)
{
	struct space *copy = space_allocate();

	if (!copy)
		return NULL;
	int error = copy_areas(copy, space);

	tlb_flush_space(space);
	copy->heap_start = space->heap_start;
	copy->heap_end = space->heap_end;
	if (!error)
		return copy;
	space_destroy(copy);
	return NULL;
}
/* } SOLUTION 6.4 */
