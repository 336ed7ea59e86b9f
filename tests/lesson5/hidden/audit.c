/* Broken allocators, for the hidden tests; and sound ones that are used. */
#include "tests/lesson5/memory/audit.h"

#include "kernel/lib/random.h"
#include "mm/kmalloc.h"
#include "tests/lesson5/hidden/audit_slabs.h"

#define TAKEN 200

/* ---- free lists ---- */

void spoil_in_two_lists(void)
{
	poke_append(list_of(1), &free_0[1]->link);
}

/* Followed forwards, the links are right but for a page too many. */
void spoil_twice_in_one_list(void)
{
	poke_link(&free_0[2]->link.next, &free_0[1]->link);
}

void spoil_circle_of_one(void)
{
	poke_link(&free_0[2]->link.next, &free_0[2]->link);
	poke_link(&free_0[2]->link.previous, &free_0[2]->link);
}

void spoil_in_no_list_nor_counted(void)
{
	poke_remove(&free_0[1]->link);
	poke(&zone->free, zone->free - 1);
}

void spoil_no_list_at_all(void)
{
	poke_link(&list_of(0)->next, list_of(0));
	poke_link(&list_of(0)->previous, list_of(0));
}

void spoil_counter_too_low(void)
{
	poke(&zone->free, zone->free - 1);
}

void spoil_counter_of_dma(void)
{
	poke(&zones[ZONE_DMA].free, zones[ZONE_DMA].free + 1024);
}

void spoil_back_link(void)
{
	poke_link(&free_0[1]->link.previous, &free_0[2]->link);
}

void spoil_back_link_of_the_first(void)
{
	poke_link(&free_0[0]->link.previous, &free_0[1]->link);
}

void spoil_back_link_of_the_head(void)
{
	poke_link(&list_of(0)->previous, &free_0[0]->link);
}

void spoil_link_is_null(void)
{
	poke_link(&free_0[0]->link.next, NULL);
}

void spoil_link_out_of_memory(void)
{
	poke_link(&list_of(3)->next, nowhere());
}

void spoil_link_into_a_page(void)
{
	poke_link(&free_0[0]->link.next, (struct list *)((char *)&free_0[1]->link + 4));
}

void spoil_link_behind_the_array(void)
{
	poke_link(&free_0[0]->link.next, &page_array[page_frames].link);
}

/* Linked as it should be, and in the other zone's list, which counts it. */
void spoil_other_zone(void)
{
	struct zone *other = &zones[ZONE_DMA];

	poke_remove(&free_0[1]->link);
	poke_append(&other->lists[0], &free_0[1]->link);
	poke(&zone->free, zone->free - 1);
	poke(&other->free, other->free + 1);
}

void spoil_other_order(void)
{
	poke_remove(&free_0[1]->link);
	poke_append(list_of(1), &free_0[1]->link);
}

/* The lists of orders 0 and 1 have as many blocks as they should, and each has one of the other. */
void spoil_exchanged(void)
{
	struct page *other = list_entry(list_of(2)->next, struct page, link);

	if (list_is_empty(list_of(2)))
		other = list_entry(list_of(10)->next, struct page, link);
	struct list *home = list_of(other->order);

	poke_remove(&free_0[1]->link);
	poke_remove(&other->link);
	poke_append(list_of(0), &other->link);
	poke_append(home, &free_0[1]->link);
}

/* Each zone's list of the largest blocks has one of the other's. */
void spoil_exchanged_zones(void)
{
	struct list *dma = &zones[ZONE_DMA].lists[ORDERS - 1], *normal = list_of(ORDERS - 1);
	struct list *from_dma = dma->next, *from_normal = normal->next;

	poke_remove(from_dma);
	poke_remove(from_normal);
	poke_append(normal, from_dma);
	poke_append(dma, from_normal);
}

void spoil_reserved_in_a_list(void)
{
	zone = &zones[ZONE_DMA];
	poke_append(list_of(0), &page_array[1].link);
	poke(&zone->free, zone->free + 1);
	zone = &zones[ZONE_NORMAL];
}

void spoil_used_in_a_list(void)
{
	poke_append(list_of(1), &block_1->link);
	poke(&zone->free, zone->free + 2);
}

/* As many as it should have, but one of them is not free. */
void spoil_used_for_free(void)
{
	poke_remove(&free_0[1]->link);
	poke_append(list_of(0), &block_1->link);
}

void spoil_tail_for_free(void)
{
	poke_page(block_2 + 1, PAGE_TAIL, 0);
	poke_remove(&free_0[1]->link);
	poke_append(list_of(0), &block_2[1].link);
}

void spoil_tail_in_a_list(void)
{
	poke_append(list_of(0), &block_2[1].link);
}

/* ---- blocks ---- */

static struct page *large_free(void)
{
	return list_entry(list_of(10)->next, struct page, link);
}

void spoil_used_within_a_free_block(void)
{
	poke_page(large_free() + 5, PAGE_USED, 0);
}

void spoil_free_within_a_free_block(void)
{
	poke_page(large_free() + 1023, PAGE_FREE, 0);
}

void spoil_reserved_within_a_block(void)
{
	poke_page(block_2 + 3, PAGE_RESERVED, 0);
}

/* A free block of order 1 at an odd frame; all else is right. */
void spoil_not_aligned(void)
{
	poke_page(block_2, PAGE_USED, 0);
	poke_page(block_2 + 1, PAGE_FREE, 1);
	poke_page(block_2 + 3, PAGE_USED, 0);
	poke_append(list_of(1), &block_2[1].link);
	poke(&zone->free, zone->free + 2);
}

void spoil_used_not_aligned(void)
{
	poke_page(block_2, PAGE_USED, 0);
	poke_page(block_2 + 1, PAGE_USED, 1);
	poke_page(block_2 + 3, PAGE_USED, 0);
}

void spoil_order_too_large(void)
{
	poke_page(block_1, PAGE_USED, ORDERS);
}

/* All else is right. */
void spoil_order_too_large_of_a_page(void)
{
	poke_page(block_0, PAGE_USED, ORDERS);
}

void spoil_order_of_255(void)
{
	poke_page(free_0[1], PAGE_FREE, 255);
}

void spoil_overlap(void)
{
	poke_page(block_1, PAGE_USED, 2);
}

void spoil_lonely_tail(void)
{
	poke_page(block_2, PAGE_USED, 1);
}

void spoil_no_state(void)
{
	poke_page(block_1, 77, 1);
}

/* Two halves of a block of the largest order, in the list below. */
void spoil_two_large_free_buddies(void)
{
	struct page *page = large_free();

	poke_remove(&page->link);
	poke_page(page, PAGE_FREE, 9);
	poke_page(page + 512, PAGE_FREE, 9);
	poke_append(list_of(9), &page->link);
	poke_append(list_of(9), &page[512].link);
}

void spoil_largest_in_no_list(void)
{
	poke_remove(&large_free()->link);
}

/* ---- caches ---- */

void spoil_cache_counts_slabs(void)
{
	poke(&cache->slabs, cache->slabs + 1);
}

void spoil_cache_counts_objects(void)
{
	poke(&cache->used, cache->used - 1);
}

void spoil_cache_counts_too_few_slabs(void)
{
	poke(&cache->slabs, cache->slabs - 1);
}

void spoil_cache_counts_too_many_objects(void)
{
	poke(&cache->used, cache->used + 1);
}

/* ---- sound allocators ---- */

static uint32_t sum_of(const void *start, uint32_t bytes, uint32_t sum)
{
	for (const uint32_t *word = start; bytes >= 4; bytes -= 4)
		sum = (sum << 5 | sum >> 27) ^ *word++;
	return sum;
}

/* A sum of all that the auditor looks at. */
uint32_t sum_of_all(void)
{
	uint32_t sum = sum_of(zones, sizeof(zones), 1);

	sum = sum_of(page_array, page_frames * sizeof(struct page), sum);
	for (const struct list *link = slab_caches.next; link != &slab_caches; link = link->next)
		sum = sum_of(list_entry(link, struct slab_cache, link), sizeof(struct slab_cache),
			     sum);
	for (uint32_t frame = 0; frame < page_frames; frame++)
		if (page_array[frame].state == PAGE_SLAB)
			sum = sum_of(page_address(&page_array[frame]), PAGE_SIZE, sum);
	return sum;
}

/* All that are in the chain: each object's first word is the address of the next. */
static void free_chain(void **chain, bool of_pages)
{
	while (chain) {
		void **next = *chain;

		if (of_pages)
			page_free(chain, 0);
		else
			kfree(chain);
		chain = next;
	}
}

/* Lists longer than anybody would guess: `pages` single pages in use, with as many free ones
 * between them, and some hundred slabs that are full, partial and empty, of large objects and of
 * small ones. What is found is answered. */
void audit_long_lists(uint32_t pages)
{
	static const uint16_t sizes[] = { 2000, 16 };
	void **kept = NULL, **given = NULL, **objects = NULL, **object;

	for (uint32_t i = 0; i < 2 * pages; i++) {
		void **page = page_alloc(0), ***chain = i % 2 ? &kept : &given;

		if (!page)
			break;
		*page = *chain;
		*chain = page;
	}
	free_chain(given, true);
	for (unsigned size = 0; size < 2; size++)
		for (uint32_t i = 0; i < 500 && (object = kmalloc(sizes[size])); i++) {
			*object = objects;
			objects = object;
		}
	answer(memory_audit());
	for (object = objects; object && *object; object = *object) {
		void **second = *object;

		*object = *second;
		kfree(second);
	}
	answer(memory_audit());
	free_chain(objects, false);
	answer(memory_audit());
	free_chain(kept, true);
}

static void *taken[TAKEN];
static uint32_t orders[TAKEN];

/* Takes a large block more, or gives all of them back: what is sound is another thing each time. */
void stir(void)
{
	static void *blocks[3];
	static unsigned count;

	if (count < sizeof(blocks) / sizeof(blocks[0])) {
		blocks[count++] = page_alloc(ORDERS - 1);
		return;
	}
	while (count > 0)
		page_free(blocks[--count], ORDERS - 1);
}

/* Blocks and objects of all sizes come and go: how many contradictions are found after every 250.
 * Interrupts stay disabled. */
uint32_t audit_under_load(uint32_t seed, uint32_t rounds)
{
	struct random random = { seed };
	uint32_t found = 0;

	for (uint32_t round = 0; round < rounds; round++) {
		uint32_t number = random_below(&random, TAKEN), kind = number % 3;

		if (!taken[number]) {
			orders[number] = random_below(&random, 6);
			taken[number] = kind == 0 ? page_alloc(orders[number])
					: kind == 1
					    ? kmalloc(random_below(&random, 40u << orders[number]))
					    : slab_alloc(cache);
		} else {
			if (kind == 0)
				page_free(taken[number], orders[number]);
			else if (kind == 1)
				kfree(taken[number]);
			else
				slab_free(cache, taken[number]);
			taken[number] = NULL;
		}
		if (round % 400 == 0)
			slab_shrink(cache);
		if (round % 250 == 0)
			found += memory_audit();
	}
	return found;
}
