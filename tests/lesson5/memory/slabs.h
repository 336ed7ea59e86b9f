/* What tests of slabs share: a cache of the test's own, in a kernel that has no other yet. */
#pragma once

#include "tests/lesson4/threads/thread_test.h"

#include "kernel/lib/string.h"
#include "mm/page.h"
#include "mm/page_alloc.h"
#include "mm/slab.h"

#define MOST 4096 /* objects, and links of a list */

static struct slab_cache *caches[2];
static void *objects[MOST];
static uint32_t object_count;

/* What constructors were called for. */
static void *constructed[MOST];
static uint32_t constructed_count;

#define CONSTRUCTED 0x600dc0de

static void construct(void *object)
{
	if (constructed_count < MOST)
		constructed[constructed_count] = object;
	constructed_count++;
	*(uint32_t *)object = CONSTRUCTED;
}

static uint32_t length_of(const struct list *list)
{
	uint32_t length = 0;

	for (const struct list *link = list->next; link != list && length < MOST; link = link->next)
		length++;
	return length;
}

/* Slabs, once for all. The device's interrupts are masked, so that interrupts can be enabled. */
uint32_t begin_slabs(void)
{
	quiet();
	slab_initialize();
	return length_of(&slab_caches);
}

/* Makes cache `number`: returns how many objects are in its slabs; 0 for no cache. */
uint32_t make_cache(uint32_t number, uint32_t size, uint32_t alignment, uint32_t constructs)
{
	static const char *const names[] = { "test-a", "test-b" };

	caches[number] =
	    slab_cache_create(names[number], size, alignment, constructs ? construct : NULL);
	constructed_count = 0;
	return caches[number] ? caches[number]->count : 0;
}

uint32_t take(uint32_t number)
{
	return (uintptr_t)slab_alloc(caches[number]);
}

void give(uint32_t number, void *object)
{
	slab_free(caches[number], object);
}

uint32_t destroy(uint32_t number)
{
	return slab_cache_destroy(caches[number]);
}

uint32_t free_pages(void)
{
	return page_free_count();
}

/* Partial, full, empty slabs, as listed; slabs and objects handed out, as counted. */
void answer_lists(uint32_t number)
{
	const struct slab_cache *cache = caches[number];

	answer(length_of(&cache->partial));
	answer(length_of(&cache->full));
	answer(length_of(&cache->empty));
	answer(cache->slabs);
	answer(cache->used);
}

/*
 * Takes `count` objects and fills each with a number of its own. Answers how many there were,
 * how many of them are not aligned, not in a page that is PAGE_SLAB, and not as they were filled
 * when all are there.
 */
void fill_objects(uint32_t number, uint32_t count)
{
	const struct slab_cache *cache = caches[number];
	uint32_t words = cache->size / 4, misaligned = 0, elsewhere = 0, overwritten = 0;

	for (object_count = 0; object_count < count; object_count++) {
		uint32_t *object = objects[object_count] = slab_alloc(caches[number]);

		if (!object)
			break;
		misaligned += (uintptr_t)object % cache->alignment != 0;
		elsewhere += !slab_has(object) || !slab_has((char *)object + cache->size - 1) ||
			     slab_of(object) != slab_of((char *)object + cache->size - 1);
		for (uint32_t i = 0; i < words; i++)
			object[i] = object_count << 12 ^ i;
	}
	for (uint32_t n = 0; n < object_count; n++)
		for (uint32_t i = 0; i < words; i++)
			if (((uint32_t *)objects[n])[i] != (n << 12 ^ i)) {
				overwritten++;
				break;
			}
	answer(object_count);
	answer(misaligned);
	answer(elsewhere);
	answer(overwritten);
}

/* Gives back what fill_objects took. */
void empty_objects(uint32_t number)
{
	while (object_count > 0)
		slab_free(caches[number], objects[--object_count]);
}
