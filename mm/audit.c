/*
 * The auditor: several ways to count the same pages must give one result.
 *
 *	the array	block after block: how many are free, of each order, and their pages
 *	the lists	as many blocks, each free, and of the list's order and zone
 *	the slabs	each in the list that its map asks for, each on a page that is PAGE_SLAB
 *
 * A broken list may have no end, and a broken link lead anywhere. So no list is followed for more
 * links than there are frames, and no link before it is known to be that of a page, or of a slab.
 */
#include "mm/audit.h"

#include "kernel/report/printk.h"
#include "mm/slab.h"
#include "mm/zones.h"

static uint32_t found;

/* Counts a contradiction, and prints the first ones: what is wrong with which frame of a zone,
 * order of a zone, or slab of a cache. */
static void contradiction(const char *where, uint32_t number, const char *what)
{
	if (found++ < AUDIT_LINES)
		printk("audit: %s %u: %s\n", where, number, what);
}

/* EXERCISE 5.6 (the auditor): memory_audit (mm/audit.h).

   contradiction(zone->name or cache->name, number, "...") counts and prints: `number` is a frame,
   an order, or for a cache the frame of the slab. Every invariant of mm/page.h, mm/buddy.h and
   mm/slab.h can be broken, each in several ways.

   Pitfalls: a list may be a circle without its head, or leave the array. A block in two lists, or
   twice in one. A free block in no list. Blocks that overlap, or reach into the next zone. A block
   that is free next to its free buddy. A slab that is right by itself, and in the wrong list. A
   page that is PAGE_SLAB and in no cache. Good allocators are never accused, also while objects are
   in magazines and in quarantine. */
/* SOLUTION 5.6 { */
/* ---- blocks ---- */

/* Is it the link of a page in the zone? */
static bool is_link_in(const struct zone *zone, const struct list *link)
{
	uint32_t offset = (uintptr_t)link - (uintptr_t)&page_array[zone->first].link;

	return offset % sizeof(struct page) == 0 &&
	       offset / sizeof(struct page) < zone->end - zone->first;
}

static bool is_free(const struct page *page, unsigned order)
{
	return page->state == PAGE_FREE && page->order == order;
}

/* Checks the block that begins at this frame. Returns the frame after it. */
static uint32_t audit_block(const struct zone *zone, uint32_t frame)
{
	const struct page *page = &page_array[frame];
	uint32_t size = 1u << page->order % ORDERS, end = frame + size;

	if (page->state == PAGE_RESERVED)
		return frame + 1;
	if (page->state >= PAGE_TAIL || page->order >= ORDERS || frame % size || end > zone->end) {
		contradiction(zone->name, frame, "is not a block, nor part of one");
		return frame + 1;
	}
	for (uint32_t tail = frame + 1; tail < end; tail++)
		if (page_array[tail].state != PAGE_TAIL)
			contradiction(zone->name, tail, "is in a block, and not its tail");
	if (page->order < ORDERS - 1 && is_free(page, page->order) &&
	    is_free(&page_array[frame ^ size], page->order))
		contradiction(zone->name, frame, "is free, and so is its buddy");
	return end;
}

/* How many blocks of the order are in the list. */
static uint32_t audit_list(const struct zone *zone, unsigned order)
{
	const struct list *head = &zone->lists[order], *link = head;
	uint32_t blocks = 0;

	for (; link->next != head && blocks <= zone->end - zone->first; blocks++) {
		if (!is_link_in(zone, link->next) || link->next->previous != link) {
			contradiction(zone->name, order, "a link of the list is wrong");
			return blocks;
		}
		link = link->next;
		if (!is_free(list_entry(link, struct page, link), order))
			contradiction(zone->name, order, "what is in the list is not free");
	}
	if (head->previous != link)
		contradiction(zone->name, order, "the list has no end");
	return blocks;
}

/* How many of its pages are cut into objects. */
static uint32_t audit_zone(const struct zone *zone)
{
	uint32_t blocks[ORDERS] = { 0 }, pages = 0, slabs = 0, next;

	for (uint32_t frame = zone->first; frame < zone->end; frame = next) {
		const struct page *page = &page_array[frame];

		next = audit_block(zone, frame);
		slabs += page->state == PAGE_SLAB;
		if (page->state == PAGE_FREE) {
			pages += next - frame;
			blocks[page->order % ORDERS]++;
		}
	}
	for (unsigned order = 0; order < ORDERS; order++)
		if (audit_list(zone, order) != blocks[order])
			contradiction(zone->name, order, "not all free blocks are in the list");
	if (pages != zone->free)
		contradiction(zone->name, pages, "this many pages are free, not zone->free");
	return slabs;
}

/* ---- slabs ---- */

/* Do the slab's own fields agree with each other? */
static bool is_whole(const struct slab *slab, const struct slab_cache *cache)
{
	uint32_t words = (cache->count + 31) / 32, bits = 0;
	const char *start = (const char *)slab, *map_end = (const char *)&slab->map[words];

	for (uint32_t index = 0; index < words * 32; index++)
		if (slab->map[index / 32] >> index % 32 & 1)
			bits += index < cache->count ? 1 : PAGE_SIZE; /* never right */
	return slab->cache == cache && slab->used == bits && slab->objects >= map_end &&
	       (uintptr_t)slab->objects % cache->alignment == 0 &&
	       slab->objects + cache->count * cache->size <= start + PAGE_SIZE;
}

/* Of a list of slabs with `least` to `most` objects handed out: how many; adds their objects. */
static uint32_t audit_slabs(const struct slab_cache *cache, const struct list *head, uint32_t least,
			    uint32_t most, uint32_t *used)
{
	const struct list *link = head;
	uint32_t slabs = 0;

	for (; link->next != head && slabs < page_frames; slabs++, link = link->next) {
		const struct slab *slab = slab_of(link->next);

		if (!slab || &slab->link != link->next || slab->link.previous != link) {
			contradiction(cache->name, slabs, "a link of its lists is wrong");
			return slabs;
		}
		if (!is_whole(slab, cache) || slab->used < least || slab->used > most)
			contradiction(cache->name, frame_of(page_at(slab)),
				      "map, count, objects and list of this slab disagree");
		*used += slab->used;
	}
	if (head->previous != link)
		contradiction(cache->name, slabs, "one of its lists has no end");
	return slabs;
}

/* How many slabs it has. */
static uint32_t audit_cache(const struct slab_cache *cache)
{
	uint32_t used = 0,
		 slabs = audit_slabs(cache, &cache->full, cache->count, cache->count, &used) +
			 audit_slabs(cache, &cache->partial, 1, cache->count - 1, &used) +
			 audit_slabs(cache, &cache->empty, 0, 0, &used);

	if (slabs != cache->slabs || used != cache->used)
		contradiction(cache->name, slabs, "it counts other slabs or objects than it has");
	return slabs;
}

uint32_t memory_audit(void)
{
	uint32_t slabs = 0;

	found = 0;
	for (const struct zone *zone = zones; zone < zones + ZONES; zone++)
		slabs += audit_zone(zone);
	for (const struct list *link = slab_caches.next; link != &slab_caches; link = link->next)
		slabs -= audit_cache(list_entry(link, struct slab_cache, link));
	if (slabs)
		contradiction("slabs", slabs, "pages are PAGE_SLAB and no cache's, or the reverse");
	return found;
}
/* } SOLUTION 5.6 */
