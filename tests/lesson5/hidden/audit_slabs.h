/* Broken slabs and caches, for the hidden tests: a part of audit.c. */
#pragma once

#include "tests/lesson5/memory/audit.h"

#define USER_ADDRESS 0x10000000 /* nothing is there */

static struct list *nowhere(void)
{
	return (struct list *)USER_ADDRESS;
}

void spoil_bit_is_lost(void)
{
	poke(&full->map[0], full->map[0] & ~2u);
}

void spoil_bit_too_many(void)
{
	poke(&empty->map[0], 1);
}

void spoil_bit_beyond_the_objects(void)
{
	poke(&partial->map[0], partial->map[0] | 1u << 31);
}

/* Its map has as many bits as it should. */
void spoil_bit_lost_for_one_beyond(void)
{
	poke(&full->map[0], (full->map[0] & ~2u) | 1u << 30);
}

void spoil_objects_beyond_the_slab(void)
{
	poke(&partial->objects, (uintptr_t)partial->objects + cache->size);
}

void spoil_objects_in_the_map(void)
{
	poke(&partial->objects, (uintptr_t)partial + 16);
}

void spoil_objects_not_aligned(void)
{
	poke(&partial->objects, (uintptr_t)partial->objects - 4);
}

void spoil_objects_of_another_page(void)
{
	poke(&partial->objects, (uintptr_t)full->objects);
}

void spoil_full_in_partial(void)
{
	poke_remove(&full->link);
	poke_append(&cache->partial, &full->link);
}

void spoil_empty_in_partial(void)
{
	poke_remove(&empty->link);
	poke_append(&cache->partial, &empty->link);
}

void spoil_partial_in_full(void)
{
	poke_remove(&partial->link);
	poke_append(&cache->full, &partial->link);
}

void spoil_partial_in_empty(void)
{
	poke_remove(&partial->link);
	poke_append(&cache->empty, &partial->link);
}

void spoil_slab_in_no_list(void)
{
	poke_remove(&empty->link);
}

void spoil_slab_in_no_list_nor_counted(void)
{
	poke_remove(&empty->link);
	poke(&cache->slabs, cache->slabs - 1);
}

void spoil_slab_of_another_cache(void)
{
	poke(&partial->cache, (uintptr_t)list_entry(slab_caches.next, struct slab_cache, link));
}

void spoil_slab_count_alone(void)
{
	poke(&partial->used, partial->used + 1);
}

void spoil_slab_circle(void)
{
	poke_link(&cache->full.previous->next, &full->link);
}

void spoil_slab_back_link(void)
{
	poke_link(&full->link.previous, &partial->link);
}

void spoil_slab_head_back_link(void)
{
	poke_link(&cache->full.previous, &full->link);
}

void spoil_slab_link_is_null(void)
{
	poke_link(&cache->partial.next, NULL);
}

void spoil_slab_link_out_of_memory(void)
{
	poke_link(&full->link.next, nowhere());
}

void spoil_slab_link_into_a_slab(void)
{
	poke_link(&cache->partial.next, (struct list *)partial->objects);
}

void spoil_slab_page_is_no_slab(void)
{
	poke_page(page_at(partial), PAGE_USED, 0);
}

void spoil_slab_page_of_nobody(void)
{
	poke_page(block_1, PAGE_SLAB, 1);
}

void spoil_slab_page_is_free(void)
{
	poke_page(page_at(empty), PAGE_FREE, 0);
	poke_append(list_of(0), &page_at(empty)->link);
	poke(&zone->free, zone->free + 1);
}
