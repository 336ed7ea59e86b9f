/*
 * The zones, in which page_alloc looks for pages, and their reserves.
 *
 *	zone	frames			for
 *	DMA	below 16 MiB		devices with addresses of 24 bits, and if Normal has none
 *	Normal	from there to 896 MiB	everything else
 *
 * Each zone has a reserve, in pages. A request that leaves less than that in a zone is refused
 * there, unless it comes with interrupts disabled: an interrupt handler cannot wait until somebody
 * frees a page, and others can fail. A request that could be served from Normal leaves twice as
 * much in DMA, because no other zone can help a device.
 */
#pragma once

#include "mm/buddy.h"

enum { ZONE_DMA, ZONE_NORMAL, ZONES };

extern struct zone zones[ZONES];

static inline struct zone *zone_of(const struct page *page)
{
	return &zones[frame_of(page) < zones[ZONE_DMA].end ? ZONE_DMA : ZONE_NORMAL];
}

/* buddy_give to the block's zone; inline where it is a page of Normal whose buddy is in use, as it
 * nearly always is. (The array begins at a page, so the addresses of the entries of two such
 * buddies differ in one bit.) */
static inline void zone_give(struct page *page)
{
	struct page *buddy = (struct page *)((uintptr_t)page ^ sizeof(*page));
	struct zone *normal = &zones[ZONE_NORMAL];

	if (page->order > 0 || page < &page_array[normal->first] || buddy->state == PAGE_FREE) {
		buddy_give(zone_of(page), page);
	} else {
		page->state = PAGE_FREE;
		list_insert(&page->link, normal->lists[0].next);
		normal->free++;
	}
}

/* From lesson 6 on: what page_alloc calls when there is no block. Gives pages back that are kept
 * only for speed; false if there is none. Any context, so it may have to do nothing. */
extern bool (*page_reclaim)(void);

/* page_alloc for a device: from the zone DMA only. Any context. */
void *page_alloc_dma(unsigned order);

/* Fault injection: the n-th request from now on fails, and only that one; 0: none. Requests are
 * page_alloc, page_alloc_dma, and kmalloc while kmalloc_debug.h checks it. */
extern uint32_t allocation_fails_in;

/* Counts a request, and says whether it is the one that fails. Interrupts are disabled. */
static inline bool allocation_fails(void)
{
	return allocation_fails_in > 0 && --allocation_fails_in == 0;
}
