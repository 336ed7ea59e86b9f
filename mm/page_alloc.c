/*
 * The page allocator from lesson 5 on: which zone a request is served from, and who is refused.
 *
 * mm/zones.h says how much a request must leave in a zone. When nothing is left the result is NULL,
 * and every caller passes that on, up to the program: ENOMEM.
 *
 * A block that is given back and is not what the caller says would spoil the lists, and show itself
 * much later, in somebody else's memory. So page_free looks first, and names who had the block.
 *
 * Any context: interrupts are off while the lists change.
 */
#include "mm/page_alloc.h"

#include <stdbool.h>

#include "kernel/cpu/interrupts.h"
#include "kernel/lib/string.h"
#include "kernel/report/panic.h"
#include "kernel/report/symbols.h"
#include "mm/zones.h"

#define JUNK 0xcc /* INT3: executing freed memory shows as well */

/* Of larger blocks only the first page is filled: it takes long. */
#define SMALL_ORDER 4

#define SYMBOL_TEXT 80 /* bytes of a function's name with its address */

struct zone zones[ZONES];
uint32_t allocation_fails_in;

/* EXERCISE 5.3 (when there is none): allocate.

   A block of 2^order pages from `first`, or from a zone below it, for `owner`: its kernel address,
   or NULL. mm/zones.h says who may take how much. allocation_fails() is asked once for each call.

   Pitfalls: a zone's reserve is compared with what is free in this zone, after the request. A zone
   may have enough pages and no block of this order. Whether interrupts were on is known before they
   are switched off, and afterwards they are as they were. No block is ever handed out without an
   owner, not even for an instant. */
/* SOLUTION 5.3 { */
/* The caller has interrupts off; `can_wait`: had they been on? */
static struct page *take(struct zone *first, unsigned order, bool can_wait)
{
	for (struct zone *zone = first; zone >= zones; zone--) {
		uint32_t kept = zone == first ? zone->reserve : 2 * zone->reserve;
		struct page *page = NULL;

		if (zone->free >= (can_wait ? kept : 0) + (1u << order))
			page = buddy_take(zone, order);
		if (page)
			return page;
	}
	return NULL;
}

static void *allocate(struct zone *first, unsigned order, const void *owner)
{
	ASSERT(order < ORDERS);
	bool enabled = interrupts_disable();
	struct page *page = allocation_fails() ? NULL : take(first, order, enabled);

	if (page)
		page->owner = (uintptr_t)owner;
	interrupts_restore(enabled);
	return page ? page_address(page) : NULL;
}
/* } SOLUTION 5.3 */

void *page_alloc(unsigned order)
{
	return allocate(&zones[ZONE_NORMAL], order, __builtin_return_address(0));
}

void *page_alloc_dma(unsigned order)
{
	return allocate(&zones[ZONE_DMA], order, __builtin_return_address(0));
}

/* Ends the run: says what is at the address instead of a block of this order. `page` is NULL for no
 * memory. */
static void __attribute__((noreturn)) refuse(const struct page *page, const void *pages,
					     unsigned order)
{
	static const char *const states[] = {
		[PAGE_RESERVED] = "was never handed out",
		[PAGE_FREE] = "is free already",
		[PAGE_USED] = "has another order",
		[PAGE_SLAB] = "is cut into objects",
		[PAGE_TAIL] = "is not the first page of its block",
	};
	char owner[SYMBOL_TEXT];

	if (!page)
		panic("page_free: %p is not memory", pages);
	symbol_describe(page->owner, owner, sizeof(owner));
	panic("page_free: %p of order %u %s (order %u, last allocated or freed by %s)", pages,
	      order, states[page->state], page->order, owner);
}

/* EXERCISE 5.2 (the buddy system, part 2): page_free (mm/page_alloc.h).

   refuse(page_at(pages), pages, order) ends the run with what is wrong. The junk is written while
   the pages still are the caller's. `owner` becomes the address that the caller goes on at:
   __builtin_return_address(0).

   Pitfalls: an address inside a page; the address of a block's second page; the right address with
   another order; a block that is free; no memory at all. */
/* SOLUTION 5.2 { */
void page_free(void *pages, unsigned order)
{
	struct page *page = page_at(pages);

	if (!page || (uintptr_t)pages % PAGE_SIZE || page->state != PAGE_USED ||
	    page->order != order)
		refuse(page, pages, order);
	memset(pages, JUNK, PAGE_SIZE << (order <= SMALL_ORDER ? order : 0));
	bool enabled = interrupts_disable();

	page->owner = (uintptr_t)__builtin_return_address(0);
	buddy_give(zone_of(page), page);
	interrupts_restore(enabled);
}
/* } SOLUTION 5.2 */

size_t page_free_count(void)
{
	return zones[ZONE_DMA].free + zones[ZONE_NORMAL].free;
}
