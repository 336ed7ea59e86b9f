/*
 * Real pages and slabs, and how to spoil them for an audit: `spoil_...` changes words by poke, and
 * put_back puts back what was there. None of this is in memory while the auditor runs
 * (tests/lesson5/audits.py).
 */
#pragma once

#include "tests/lesson5/memory/code.h"

#include "mm/audit.h"
#include "mm/page.h"
#include "mm/page_alloc.h"
#include "mm/slab.h"
#include "mm/zones.h"

#define POKES	 64
#define PAGES	 12
#define PER_SLAB 4 /* objects of 1000 bytes */

static struct {
	uint32_t *place, old;
} pokes[POKES];
static uint32_t poke_count;

static void poke(void *place, uint32_t value)
{
	uint32_t *word = place;

	pokes[poke_count].place = word;
	pokes[poke_count++].old = *word;
	*word = value;
}

static void poke_link(struct list **place, const struct list *link)
{
	poke(place, (uintptr_t)link);
}

/* State and order are two bytes of one word. */
static void poke_page(struct page *page, uint32_t state, uint32_t order)
{
	uint32_t *word = (uint32_t *)&page->state;

	poke(word, (*word & 0xffff0000) | order << 8 | state);
}

static void poke_remove(struct list *link)
{
	poke_link(&link->previous->next, link->next);
	poke_link(&link->next->previous, link->previous);
}

static void poke_append(struct list *head, struct list *link)
{
	struct list *last = head->previous;

	poke_link(&link->next, head);
	poke_link(&link->previous, last);
	poke_link(&last->next, link);
	poke_link(&head->previous, link);
}

/* Handed out: a block of order 2, others of order 1 and 0. */
static struct page *block_2, *block_1, *block_0;
/* Free pages of order 0, in this order at the front of their list. */
static struct page *free_0[3];
static struct zone *zone;
/* A cache with two full slabs, a partial one and an empty one. */
static struct slab_cache *cache;
static struct slab *full, *partial, *empty;

static struct list *list_of(unsigned order)
{
	return &zone->lists[order];
}

static void begin_pages(void)
{
	void *pages[PAGES];

	zone = &zones[ZONE_NORMAL];
	for (unsigned i = 0; i < PAGES; i++)
		pages[i] = page_alloc(0);
	for (unsigned i = 1; i < PAGES; i += 2)
		page_free(pages[i], 0);
	block_2 = page_at(page_alloc(2));
	block_1 = page_at(page_alloc(1));
	block_0 = page_at(pages[0]);
	struct list *link = list_of(0)->next;

	for (unsigned i = 0; i < 3; i++, link = link->next)
		free_0[i] = list_entry(link, struct page, link);
}

static void begin_cache(void)
{
	void *objects[4 * PER_SLAB];

	cache = slab_cache_create("test", 1000, 8, 0);
	for (unsigned i = 0; i < 4 * PER_SLAB; i++)
		objects[i] = slab_alloc(cache);
	for (unsigned i = 0; i < PER_SLAB + 2; i++)
		slab_free(cache, objects[i]);
	full = list_entry(cache->full.next, struct slab, link);
	partial = list_entry(cache->partial.next, struct slab, link);
	empty = list_entry(cache->empty.next, struct slab, link);
}

void begin_audit(void)
{
	begin_cache();
	begin_pages();
}

/* Puts back what the last `spoil_...` has changed. */
void put_back(void)
{
	while (poke_count > 0) {
		poke_count--;
		*pokes[poke_count].place = pokes[poke_count].old;
	}
}

/* ---- each a broken allocator ---- */

void spoil_counter_drifts(void)
{
	poke(&zone->free, zone->free + 1);
}

void spoil_in_no_list(void)
{
	poke_remove(&free_0[1]->link);
}

/* All else is right. */
void spoil_two_free_buddies(void)
{
	poke_page(block_1, PAGE_FREE, 0);
	poke_page(block_1 + 1, PAGE_FREE, 0);
	poke_append(list_of(0), &block_1->link);
	poke_append(list_of(0), &block_1[1].link);
	poke(&zone->free, zone->free + 2);
}

/* Its end leads back into it. */
void spoil_circle(void)
{
	poke_link(&list_of(0)->previous->next, &free_0[0]->link);
}

/* The cache counts as the slab does. */
void spoil_slab_count(void)
{
	poke(&partial->used, partial->used + 1);
	poke(&cache->used, cache->used + 1);
}
