/*
 * The buddy system: free memory as blocks of 2^order pages, each aligned to its size.
 *
 * A block of order n has one buddy: the other half of the block of order n + 1 that both are in.
 * Their frame numbers differ in bit n alone:
 *
 *	order 2		[ 8  9 10 11  |  12 13 14 15 ]		8 ^ 4 = 12, 12 ^ 4 = 8
 *	order 1		[ 8  9 | 10 11 | 12 13 | 14 15 ]	12 ^ 2 = 14
 *
 * Taking: the smallest block that is large enough is split, and the upper halves stay free. Giving:
 * as long as the buddy is free and not split, the two become one block of the next order.
 *
 * Invariants:
 *	- a free block's first page is PAGE_FREE, with its order, and in the list of that order;
 *	- every other page of a block, free or not, is PAGE_TAIL;
 *	- two buddies of one order below the largest are never both free;
 *	- zone->free is the sum of all free blocks, in pages.
 *
 * Between the removal of a block and the insertion of its halves none of that is true, and so
 * interrupts are disabled. Nothing takes more than ORDERS steps. (Knuth, The Art of Computer
 * Programming, volume 1, 2.5, algorithms R and S.)
 */
#include "mm/buddy.h"

void buddy_initialize(struct zone *zone, const char *name, uint32_t first, uint32_t end)
{
	*zone = (struct zone){ .name = name, .first = first, .end = end };
	for (unsigned order = 0; order < ORDERS; order++)
		zone->lists[order] = (struct list)LIST_EMPTY(zone->lists[order]);
}

/* EXERCISE 5.2 (the buddy system, part 1): buddy_take, buddy_give, buddy_give_range (mm/buddy.h),
   so that the invariants above hold after each call.

   Pitfalls: a buddy merges only if it is the first page of a free block of the same order: its
   frame may be reserved, or free as part of a smaller block, or its `order` may be left over from
   an earlier use. There is no block above order ORDERS - 1. A zone begins and ends at a multiple of
   the largest block, so a buddy is always in the same zone. The order in which blocks are freed
   makes no difference to what is free in the end. A range may begin and end anywhere, and be longer
   than the largest block.

   Speed: at most 40 instructions without a split or merge. */
/* SOLUTION 5.2 { */
/* The lists between are empty, or a smaller block would have been found: each half goes into an
 * empty list. */
struct page *buddy_take(struct zone *zone, unsigned order)
{
	struct list *list = &zone->lists[order];

	while (list_is_empty(list))
		if (++list == &zone->lists[ORDERS])
			return NULL;
	struct page *page = list_entry(list->next, struct page, link);

	list_remove(&page->link);
	zone->free -= 1u << order;
	for (unsigned found = page->order; found > order;) {
		struct page *upper = page + (1u << --found);

		list--;
		upper->state = PAGE_FREE;
		upper->order = found;
		upper->link = (struct list){ list, list };
		*list = (struct list){ &upper->link, &upper->link };
	}
	page->state = PAGE_USED;
	page->order = order;
	return page;
}

/* All that merge become tails; in the end the lowest is the first page of the whole block. The
 * block goes to the front of its list: it is used next, while it is still in the processor's cache.
 */
void buddy_give(struct zone *zone, struct page *page)
{
	uint32_t order = page->order, frame = frame_of(page), size = 1u << order;

	zone->free += size;
	page->state = PAGE_TAIL;
	for (; order < ORDERS - 1; order++, size *= 2) {
		struct page *buddy = &page_array[frame ^ size];

		if (buddy->state != PAGE_FREE || buddy->order != order)
			break;
		list_remove(&buddy->link);
		buddy->state = PAGE_TAIL;
		frame &= ~size;
	}
	page = &page_array[frame];
	page->state = PAGE_FREE;
	page->order = order;
	list_insert(&page->link, zone->lists[order].next);
}

void buddy_give_range(struct zone *zone, uint32_t first, uint32_t count)
{
	for (uint32_t size; count > 0; first += size, count -= size) {
		unsigned order = 0;

		while (order < ORDERS - 1 && !(first & 1u << order) && 2u << order <= count)
			order++;
		size = 1u << order;
		for (uint32_t tail = 1; tail < size; tail++)
			page_array[first + tail].state = PAGE_TAIL;
		page_array[first].order = order;
		buddy_give(zone, &page_array[first]);
	}
}
/* } SOLUTION 5.2 */
