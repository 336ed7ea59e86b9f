/*
 * Reclaim: when no page is free, pages that are kept only for speed are given back.
 *
 *	empty page tables and directories	mm/page_table.c
 *	slabs without an object			mm/slab.c
 *	clean pages of files			mm/second_chance.c
 *
 * page_alloc calls this, and tries again. Not with interrupts disabled: then it may be an
 * interrupt handler that asks, in the middle of a change to what is to be given back; interrupt
 * handlers have a reserve (mm/zones.h).
 */
#include "mm/reclaim.h"

#include "kernel/cpu/interrupts.h"
#include "mm/page_cache.h"
#include "mm/page_table.h"
#include "mm/slab.h"
#include "mm/zones.h"

#define PAGES 32 /* of files, at a time */

static uint32_t shrink_slabs(void)
{
	uint32_t pages = 0;

	for (struct list *link = slab_caches.next; link != &slab_caches; link = link->next)
		pages += slab_shrink(list_entry(link, struct slab_cache, link));
	return pages;
}

/* Freeing does not allocate; `is_busy` is for a write-back that does. */
static bool reclaim(void)
{
	static bool is_busy;
	bool enabled = interrupts_disable();

	interrupts_restore(enabled);
	if (!enabled || is_busy)
		return false;
	is_busy = true;
	uint32_t pages = page_table_shrink() + shrink_slabs();

	if (pages < PAGES)
		pages += page_cache_reclaim(PAGES);
	is_busy = false;
	return pages > 0;
}

void reclaim_initialize(void)
{
	page_reclaim = reclaim;
}
