/*
 * The page allocator of lesson 5: which zone serves a request, and which requests are refused.
 *
 * mm/zones.h says how much a request must leave in a zone. If no zone can serve it, the result is
 * NULL, and every caller passes that on, up to the program: ENOMEM.
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

/* EXERCISE 5.3 (when there is none): allocate.

   A block of 2^order pages from `first`, or from a zone below it, for `owner`: its first page, or
   NULL. mm/zones.h says who may take how much. allocation_fails() is asked once for each call.

   Pitfalls: a zone's reserve is compared with what is free in this zone, after the request. A zone
   may have enough pages and no block of this order. Whether interrupts were enabled is known before
   they are disabled, and afterwards they are as they were. No block is ever handed out without
   an owner, not even for an instant. */
/* SOLUTION 5.3 { */
/* The caller has interrupts disabled; `can_wait`: had they been enabled? */
static __attribute__((noinline)) struct page *search(struct zone *first, unsigned order,
						     bool can_wait)
{
	struct page *page = NULL;

	for (struct zone *zone = first; !page && zone >= zones; zone--) {
		uint32_t kept = zone == first ? zone->reserve : 2 * zone->reserve;

		if (zone->free >= (can_wait ? kept : 0) + (1u << order))
			page = buddy_take(zone, order);
	}
	return page;
}

/* Nearly always the first zone has pages to spare, and a single one is wanted and free: that is all
 * inline. */
static inline struct page *take(struct zone *first, unsigned order, bool can_wait)
{
	int32_t spare = first->free - first->reserve;
	struct page *page = NULL;

	if (order == 0 && spare > 0)
		page = buddy_take_first(first, 0);
	ASSERT(order < ORDERS);
	if (!page && spare >= 1 << order)
		page = buddy_take(first, order);
	return page ? page : search(first, order, can_wait);
}

static inline struct page *allocate(struct zone *first, unsigned order, const void *owner)
{
	bool enabled = interrupts_disable();
	struct page *page = allocation_fails() ? NULL : take(first, order, enabled);

	if (page)
		page->owner = (uintptr_t)owner;
	interrupts_restore(enabled);
	return page;
}
/* } SOLUTION 5.3 */

/* If there is no block: again, as long as somebody gives pages back. They are anywhere, so a block
 * of many pages may take more of them than it has. */
void *page_alloc(unsigned order)
{
	const void *owner = __builtin_return_address(0);
	struct page *page = allocate(&zones[ZONE_NORMAL], order, owner);

	for (unsigned left = 1u << order; !page && left && page_reclaim && page_reclaim(); left--)
		page = allocate(&zones[ZONE_NORMAL], order, owner);
	if (!page)
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
