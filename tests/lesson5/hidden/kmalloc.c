/* kmalloc, for the hidden tests. What fails is answered as the number of a line here. */
#include "tests/lesson5/memory/kmalloc.h"

#include "kernel/lib/random.h"
#include "mm/zones.h"

#define OBJECTS 1200

static struct pool pool = { .size = 40 };

void *pool_owner(void)
{
	return pool_alloc(&pool);
}

void pool_freer(void *object)
{
	pool_free(&pool, object);
}

void *resizer(void *object, uint32_t size)
{
	return krealloc(object, size);
}

void *pages_of(uint32_t order)
{
	return page_alloc(order);
}

void *slab_object_of_others(void)
{
	struct slab_cache *cache = slab_cache_create("test", 200, 4, NULL);
	void *object = slab_alloc(cache);

	memset(object, 0, 200);
	return object;
}

void *free_page(void)
{
	void *page = page_alloc(0);

	page_free(page, 0);
	return page;
}

/* A cache of kmalloc's, one after the other from the first: its object size. */
uint32_t class_size(uint32_t number)
{
	const struct list *link = slab_caches.next;

	while (number-- > 0)
		link = link->next;
	return list_entry(link, struct slab_cache, link)->size;
}

/* Pages that are free or in slabs. */
uint32_t account(void)
{
	uint32_t pages = page_free_count();

	for (const struct list *link = slab_caches.next; link != &slab_caches; link = link->next)
		pages += list_entry(link, struct slab_cache, link)->slabs;
	return pages;
}

/* One object after the other: all pages that are free or in slabs, before and after. */
void many_times(uint32_t size, uint32_t times)
{
	answer(account());
	while (times-- > 0)
		kfree(kmalloc(size));
	free_others(2 * KMALLOC_QUARANTINE);
	answer(account());
}

/* The n-th kmalloc from now on fails, of five: which ones did, and how many were counted? */
void fail_one(uint32_t number)
{
	static void *objects[5];

	for (unsigned i = 0; i < 5; i++)
		objects[i] = kmalloc(24);
	free_others(1);
	for (unsigned i = 0; i < 5; i++)
		kfree(objects[i]);
	free_others(KMALLOC_QUARANTINE); /* a slab has room for five */
	allocation_fails_in = number;
	uint32_t before = kmalloc_allocations;

	for (unsigned i = 0; i < 5; i++)
		answer((objects[i] = kmalloc(24)) != NULL);
	answer(kmalloc_allocations - before);
	allocation_fails_in = 0;
	for (unsigned i = 0; i < 5; i++)
		kfree(objects[i]);
}

static uint32_t live(void)
{
	uint32_t count = 0;

	for (struct list *link = kmalloc_live.next; link != &kmalloc_live; link = link->next)
		count++;
	return count;
}

/* krealloc while there is no memory: objects that are handed out before, whether it returned one,
 * objects after, and bytes that are still as filled. */
void fail_to_resize(uint32_t size, uint32_t larger)
{
	uint8_t *object = kmalloc(size);

	fill(object, size, 3);
	answer(live());
	allocation_fails_in = 1;
	answer(krealloc(object, larger) != NULL);
	allocation_fails_in = 0;
	answer(live());
	answer(filled(object, size, 3));
	kfree(object);
}

/* krealloc from nothing to no byte, and from `size` bytes to none: 1 or 0 for each object, between
 * how many objects were handed out before and are afterwards. */
void resize_to_nothing(uint32_t size)
{
	answer(live());
	void *first = krealloc(NULL, 0), *second = krealloc(kmalloc(size), 0);

	answer(first != NULL);
	answer(second != NULL);
	kfree(first);
	kfree(second);
	answer(live());
}

/* The serial numbers of the objects that are handed out, from the front; then the next number. */
void answer_serials(void)
{
	for (struct list *link = kmalloc_live.next; link != &kmalloc_live; link = link->next)
		answer(list_entry(link, struct guard, link)->serial);
	answer(kmalloc_allocations);
}

/* Whether any of this many objects is the one that was freed before: the number of the first. */
uint32_t is_used_again(const void *object, uint32_t size, uint32_t times)
{
	for (uint32_t i = 1; i <= times; i++) {
		void *other = kmalloc(size);

		if (other == object)
			return i;
		kfree(other);
	}
	return 0;
}

/* Whether interrupts are as they were after each of the functions. */
uint32_t keeps_interrupts(void)
{
	uint32_t wrong = 0;

	quiet();
	for (unsigned enabled = 0; enabled < 2; enabled++) {
		for (unsigned i = 0; i < 4 * KMALLOC_QUARANTINE; i++) {
			if (enabled)
				interrupts_enable();
			void *object = krealloc(kmalloc(24), 100 + i * 40);

			kfree(object);
			wrong += interrupts_disable() != enabled;
		}
		if (enabled)
			interrupts_enable();
		kmalloc_debug_check();
		wrong += interrupts_disable() != enabled;
	}
	return wrong;
}

/* For the count of instructions: two calls between two places. */
void plain_pair(void)
{
	kfree(kmalloc(40));
}

/* With interrupts enabled, in a quarantine that is full. */
void with_interrupts(void)
{
	quiet();
	allocation_fails_in = 100;
	interrupts_enable();
	kfree(kmalloc(8));
	interrupts_disable();
	allocation_fails_in = 0;
}

void check_with_interrupts(void)
{
	quiet();
	interrupts_enable();
	kmalloc_debug_check();
	interrupts_disable();
}

/* ---- a model ---- */

static struct object {
	uint8_t *bytes;
	uint32_t size, stamp;
} taken[OBJECTS];
static uint32_t taken_count;

/* Small ones, mostly. */
static uint32_t random_size(struct random *random)
{
	static const uint16_t bounds[] = { 20, 200, 200, 2200, 2200, 20000 };

	return random_below(random, bounds[random_below(random, 6)]);
}

static void model_fill(struct object *object, uint32_t stamp)
{
	REQUIRE((uintptr_t)object->bytes % 16 == 0 && kmalloc_size(object->bytes) >= object->size);
	object->stamp = stamp;
	fill(object->bytes, object->size, stamp);
}

static void model_take(struct random *random, uint32_t stamp)
{
	struct object object = { .size = random_size(random) };

	object.bytes = kmalloc(object.size);
	if (!object.bytes)
		return;
	model_fill(&object, stamp);
	taken[taken_count++] = object;
}

static void model_give(uint32_t index)
{
	struct object object = taken[index];

	REQUIRE(filled(object.bytes, object.size, object.stamp) == object.size);
	taken[index] = taken[--taken_count];
	kfree(object.bytes);
}

static void model_resize(struct object *object, struct random *random, uint32_t stamp)
{
	uint32_t size = random_size(random), kept = size < object->size ? size : object->size;
	uint8_t *bytes = krealloc(object->bytes, size);

	if (!bytes) {
		REQUIRE(filled(object->bytes, object->size, object->stamp) == object->size);
		return;
	}
	REQUIRE(filled(bytes, kept, object->stamp) == kept);
	object->bytes = bytes;
	object->size = size;
	model_fill(object, stamp);
}

void random_operations(uint32_t seed, uint32_t rounds)
{
	struct random random = { seed };

	for (uint32_t round = 0; round < rounds && !answer_count; round++) {
		uint32_t likely = round / 500 % 2 ? 4 : 6, what = random_below(&random, 10);

		if (random_below(&random, 200) == 0)
			allocation_fails_in = 1;
		if (what < likely && taken_count < OBJECTS)
			model_take(&random, round);
		else if (what == 9 && taken_count > 0)
			model_resize(&taken[random_below(&random, taken_count)], &random, round);
		else if (taken_count > 0)
			model_give(random_below(&random, taken_count));
		allocation_fails_in = 0;
		if (round % 250 == 0)
			kmalloc_debug_check();
		if (answer_count)
			answer(round);
	}
	while (taken_count > 0 && !answer_count)
		model_give(taken_count - 1);
}
