/*
 * The page allocator of lesson 5: which zone serves a request, and which requests are refused.
 *
 * mm/zones.h says how much a request must leave in a zone. If no zone can serve it, the result is
 * NULL, and every caller passes that on, up to the program: mostly as ENOMEM, but EAGAIN from fork
 * if it is the task that has no room, and ENFILE from open.
 *
 * Any context: interrupts are disabled while the lists change.
 */
#include "mm/page_alloc.h"

#include "kernel/cpu/interrupts.h"
#include "kernel/report/panic.h"
#include "mm/zones.h"

struct zone zones[ZONES];
uint32_t allocation_fails_in;
bool (*page_reclaim)(void);

/* EXERCISE 5.3 (when no page is free): allocate.

   A block of 2^order pages from `first`, or from a zone below it, for `owner`: its first page, or
   NULL. mm/zones.h says who may take how much. allocation_fails() is asked once for each call.

   Pitfalls: a zone's reserve is compared with what is free in this zone, after the request. A zone
   may have enough pages and no block of this order. Whether interrupts were enabled is known before
   they are disabled, and afterwards they are as they were. No block is ever handed out without
   an owner, not even for an instant. */
/* SOLUTION 5.3 { */
/* From `first` down to the lowest zone. Interrupts are disabled; `enabled`: were they enabled
 * before? */
static __attribute__((noinline)) struct page *search(struct zone *first, unsigned order,
						     const void *owner, bool enabled)
{
	struct page *page = NULL;

	ASSERT(order < ORDERS);
	if (!allocation_fails())
		for (struct zone *zone = first; !page && zone >= zones; zone--) {
			uint32_t kept = zone == first ? zone->reserve : 2 * zone->reserve;

			if (zone->free >= (enabled ? kept : 0) + (1u << order))
				page = buddy_take(zone, order);
		}
	if (page)
		page->owner = (uintptr_t)owner;
	interrupts_restore(enabled);
	return page;
}

/* Nearly always a single page is wanted, and the zone has one to spare: that is all inline. */
static inline struct page *allocate(struct zone *first, unsigned order, const void *owner)
{
	bool enabled = interrupts_disable();

	if (first->free <= first->reserve || order > 0 || allocation_fails_in)
		return search(first, order, owner, enabled);
	struct page *page = buddy_take_page(first);

	page->owner = (uintptr_t)owner;
	interrupts_restore(enabled);
	return page;
}
/* } SOLUTION 5.3 */

/* If there is no block: tries again as long as pages can be reclaimed. They are scattered, so for a
 * block of many pages more of them may have to be reclaimed than it has. */
static __attribute__((noinline)) struct page *retry(unsigned order, const void *owner)
{
	struct page *page = NULL;

	for (unsigned left = 1u << order; !page && left && page_reclaim && page_reclaim(); left--)
		page = allocate(&zones[ZONE_NORMAL], order, owner);
	return page;
}

void *page_alloc(unsigned order)
{
	struct page *page = allocate(&zones[ZONE_NORMAL], order, __builtin_return_address(0));

	if (!page && !(page = retry(order, __builtin_return_address(0))))
		return NULL;
	page->references = 1;
	return page_address(page);
}

void *page_alloc_dma(unsigned order)
{
	struct page *page = allocate(&zones[ZONE_DMA], order, __builtin_return_address(0));

	return page ? page_address(page) : NULL;
}

size_t page_free_count(void)
{
	return zones[ZONE_DMA].free + zones[ZONE_NORMAL].free;
}
