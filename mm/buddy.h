/*
 * The buddy system: the free blocks of one zone of memory.
 *
 * Nothing here looks at the interrupt flag: the caller has interrupts disabled, from before the
 * call to after it (mm/page_alloc.c).
 */
#pragma once

#include "mm/page.h"

/* A range of frames with free lists of its own. */
struct zone {
	const char *name;
	uint32_t first, end;	   /* its frames: [first, end), multiples of 2^(ORDERS - 1) */
	uint32_t free;		   /* pages in all lists */
	uint32_t reserve;	   /* pages that are kept for interrupts: mm/zones.h */
	struct list lists[ORDERS]; /* free blocks, by order: links of struct page */
};

/* Makes a zone without a free block. */
void buddy_initialize(struct zone *zone, const char *name, uint32_t first, uint32_t end);

/*
 * Takes a block of 2^order pages (order 0 to ORDERS - 1) out of the zone: the lowest part of the
 * smallest free block that is large enough; the rest of that block stays free. The first page of
 * the result becomes PAGE_USED, with that order; its other pages are PAGE_TAIL. Returns the first
 * page, or NULL if no block is large enough.
 */
struct page *buddy_take(struct zone *zone, unsigned order);

/*
 * Gives a block back: `page` is its first page, with the block's order; its state does not matter.
 * As long as both buddies are free they become one block of the next order. The block that was
 * freed last is at the front of its list, so it is the next to be taken.
 */
void buddy_give(struct zone *zone, struct page *page);

/* Hands over to the zone `count` of its frames, beginning with `first`: any range, in as few blocks
 * as possible. They were PAGE_RESERVED. */
void buddy_give_range(struct zone *zone, uint32_t first, uint32_t count);

/* buddy_take of one page; inline where nothing has to be split, as it nearly always is. */
static inline struct page *buddy_take_page(struct zone *zone)
{
	struct list *list = &zone->lists[0];
	struct page *page = list_entry(list->next, struct page, link);

	if (list_is_empty(list))
		return buddy_take(zone, 0);
	list->next = page->link.next;
	list->next->previous = list;
	page->state = PAGE_USED;
	zone->free--;
	return page;
}
