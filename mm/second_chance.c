/*
 * Second chance: which page of a file is given back when no page is free.
 *
 * Which page is needed least? The one that has not been used for the longest time; but the
 * processor does not say when it used a page, only that it did (PTE_ACCESSED). So all pages of all
 * caches are in a ring, and a hand goes round (the clock of Corbato, 1968). A page that was used
 * since the hand last passed it loses the bit in all its entries, and stays; a page that was not
 * used is given back.
 *
 *	hand -> [ used: clear, go on ] [ used: clear ] [ not used, clean: give it back ] ...
 */
#include "mm/page_cache.h"
#include "mm/page_table.h"
#include "mm/reverse_map.h"

static uint32_t pages_in_ring(void)
{
	uint32_t count = 0;

	for (struct list *link = page_cache_ring.next; link != &page_cache_ring; link = link->next)
		count++;
	return count;
}

/* EXERCISE 6.6 (give me one back, part 1): page_cache_reclaim, as the opening comment says. It
   looks at each page of the ring at most twice. object_shown says how many entries map a page, and
   clears their accessed bits; object_forget takes the page out of every space, and leaves the
   programs' own copies of it alone.

   Pitfalls: a dirty page is never dropped, nor is one that a task works on: it has more references
   than those of its cache and its entries. The hand goes on where it stopped; otherwise the same
   pages are given back each time. */
/* SOLUTION 6.6 { */
#define ROUNDS 2 /* of the hand: in the first a page loses its bit, in the second it goes */

/* May the page at the hand be given back? */
static bool can_go(struct cached_page *cached)
{
	bool was_used = false;
	uint32_t shown =
	    object_shown(&cached->cache->object, cached->node.key, cached->page, &was_used);

	return !was_used && !cached->is_dirty && cached->page->references == shown + 1;
}

/* The hand passes a page. Returns whether that was given back. */
static bool pass_hand(void)
{
	struct cached_page *cached = list_entry(page_cache_ring.next, struct cached_page, in_ring);

	list_remove(&cached->in_ring);
	list_append(&page_cache_ring, &cached->in_ring);
	if (!can_go(cached))
		return false;
	object_forget(&cached->cache->object, cached->node.key, cached->page);
	page_cache_forget(cached);
	return true;
}

uint32_t page_cache_reclaim(uint32_t count)
{
	uint32_t freed = 0;

	for (unsigned round = 0; round < ROUNDS; round++)
		for (uint32_t looks = pages_in_ring(); looks > 0 && freed < count; looks--)
			freed += pass_hand();
	return freed;
}
/* } SOLUTION 6.6 */
