/* Caches of slabs, for the hidden tests. What fails is answered as the number of a line here. */
#include "tests/lesson5/memory/slabs.h"

#include "kernel/lib/random.h"
#include "mm/zones.h"

#define SLABS	 300
#define PATTERNS 3000

uint32_t slab_head(void *object)
{
	return (uintptr_t)slab_of(object);
}

uint32_t cache_at(uint32_t number)
{
	return (uintptr_t)caches[number];
}

uint32_t page(void)
{
	return (uintptr_t)page_alloc(0);
}

uint32_t shrink(uint32_t number)
{
	return slab_shrink(caches[number]);
}

uint32_t shrink_caches(void)
{
	return slab_shrink(list_entry(slab_caches.next, struct slab_cache, link));
}

/* Takes this many slabs full of objects: answers where in each slab its first object is. */
void answer_starts(uint32_t number, uint32_t slabs)
{
	const struct slab *last = NULL;

	for (object_count = 0; object_count < slabs * caches[number]->count; object_count++) {
		objects[object_count] = slab_alloc(caches[number]);
		const struct slab *slab = slab_of(objects[object_count]);

		if (slab != last)
			answer(slab ? (uintptr_t)slab->objects % PAGE_SIZE : 0);
		last = slab;
	}
}

/* ---- constructors ---- */

/* Takes objects: answers how many were constructed, how many of these twice, and how many objects
 * have not what the constructor wrote. Then frees, changes and takes them: how many have changed.
 */
void construct_each(uint32_t count)
{
	uint32_t again = 0, without = 0, changed = 0;

	for (object_count = 0; object_count < count; object_count++) {
		objects[object_count] = slab_alloc(caches[0]);
		without += *(uint32_t *)objects[object_count] != CONSTRUCTED;
	}
	for (uint32_t i = 0; i < constructed_count && i < MOST; i++)
		for (uint32_t j = 0; j < i; j++)
			again += constructed[i] == constructed[j];
	for (uint32_t n = 0; n < count; n++)
		memset((uint32_t *)objects[n] + 1, n, caches[0]->size - 4);
	for (uint32_t n = 0; n < count; n++)
		slab_free(caches[0], objects[n]);
	for (uint32_t n = 0; n < count; n++) {
		const uint8_t *bytes = objects[n];

		changed += *(uint32_t *)objects[n] != CONSTRUCTED;
		for (uint32_t i = 4; i < caches[0]->size; i++)
			if (bytes[i] != (uint8_t)n) {
				changed++;
				break;
			}
	}
	answer(constructed_count);
	answer(again);
	answer(without);
	answer(changed);
	object_count = 0;
}

static struct slab_cache *interrupted;
static void *of_the_interrupt;
static uint32_t depth, disabled;

/* What an interrupt may do while a slab is made: it takes an object of the same cache. */
static void construct_and_take(void *object)
{
	bool enabled = interrupts_disable();

	(void)object;
	interrupts_restore(enabled);
	disabled += !enabled;
	if (depth++ == 0)
		of_the_interrupt = slab_alloc(interrupted);
}

/* Answers how often the constructor found interrupts disabled, whether both objects are there and
 * differ, and the lists. */
void interrupt_a_slab(uint32_t enabled)
{
	interrupted = caches[0] = slab_cache_create("test-a", 1000, 8, construct_and_take);
	depth = disabled = 0;
	if (enabled)
		interrupts_enable();
	void *object = slab_alloc(caches[0]);
	bool after = interrupts_disable();

	answer(disabled);
	answer(after);
	answer(object && of_the_interrupt && object != of_the_interrupt);
	answer_lists(0);
	slab_free(caches[0], object);
	slab_free(caches[0], of_the_interrupt);
	answer_lists(0);
}

/* Takes an object and gives it back, and makes a cache, with interrupts enabled. */
void with_interrupts(void)
{
	quiet();
	interrupts_enable();
	slab_free(caches[0], slab_alloc(caches[0]));
	slab_cache_create("test-b", 40, 4, NULL);
	interrupts_disable();
}

/* The same with a cache that has no slab yet, and that is destroyed with the one that it gets. */
void slab_with_interrupts(void)
{
	quiet();
	interrupts_enable();
	slab_free(caches[1], slab_alloc(caches[1]));
	slab_cache_destroy(caches[1]);
	interrupts_disable();
}

/* ---- memory is short ---- */

static void *pages[1 << 14];

/* Takes all pages that somebody who can wait may have; then objects with interrupts enabled, and
 * with interrupts disabled. Gives all back. */
void without_memory(void)
{
	uint32_t count = 0;

	interrupts_enable();
	while (count < 1 << 14 && (pages[count] = page_alloc(0)))
		count++;
	void *waiting = slab_alloc(caches[0]);
	bool still = interrupts_disable();
	void *urgent = slab_alloc(caches[0]);

	answer(waiting != NULL);
	answer(still);
	answer(urgent != NULL);
	answer_lists(0);
	while (count > 0)
		page_free(pages[--count], 0);
}

/* The next page is refused: answers whether there was an object, and the lists; twice. */
void refused_page(void)
{
	for (unsigned i = 0; i < 2; i++) {
		allocation_fails_in = i == 0;
		answer(slab_alloc(caches[0]) != NULL);
		answer_lists(0);
	}
}

/* Is no cache made, or a whole one, when a page is refused? How many caches there are before and
 * after, and how many pages are lost. */
void refused_caches(void)
{
	static struct slab_cache *made[SLABS];
	uint32_t before = length_of(&slab_caches), free = page_free_count(), count = 0;

	while (count < SLABS) {
		allocation_fails_in = 1;
		made[count] = slab_cache_create("test", 64, 4, NULL);
		if (!made[count])
			break;
		count++;
	}
	allocation_fails_in = 0;
	answer(count < SLABS);
	answer(length_of(&slab_caches) - before - count);
	while (count > 0)
		if (!slab_cache_destroy(made[--count]))
			answer(count);
	slab_shrink(list_entry(slab_caches.next, struct slab_cache, link));
	answer(free - page_free_count());
}

/* ---- a model ---- */

/* Handed out. */
static struct object {
	uint32_t *words;
	uint32_t cache, stamp;
} taken[PATTERNS];
static uint32_t taken_count;

static bool is_whole(const struct object *object)
{
	uint32_t words = caches[object->cache]->size / 4;

	for (uint32_t i = 0; i < words; i++)
		if (object->words[i] != object->stamp + i)
			return false;
	return true;
}

static void model_take(uint32_t number, uint32_t stamp)
{
	struct slab_cache *cache = caches[number];
	bool partial = !list_is_empty(&cache->partial), empty = !list_is_empty(&cache->empty);
	uint32_t slabs = cache->slabs;
	struct object *object = &taken[taken_count];

	*object = (struct object){ slab_alloc(cache), number, stamp << 10 };
	REQUIRE(object->words && (uintptr_t)object->words % cache->alignment == 0);
	const struct slab *slab = slab_of(object->words);

	REQUIRE(slab && slab->cache == cache);
	REQUIRE(cache->slabs == slabs + !(partial || empty));	  /* a new one only if need be */
	REQUIRE(!partial || slab->used > 1 || cache->count == 1); /* partial before empty */
	for (uint32_t i = 0; i < cache->size / 4; i++)
		object->words[i] = object->stamp + i;
	taken_count++;
}

static void model_give(uint32_t index)
{
	struct object object = taken[index];

	REQUIRE(is_whole(&object));
	slab_free(caches[object.cache], object.words);
	REQUIRE(is_whole(&object));
	taken[index] = taken[--taken_count];
}

static void model_shrink(uint32_t number)
{
	uint32_t empty = length_of(&caches[number]->empty), slabs = caches[number]->slabs;
	uint32_t free = page_free_count();

	REQUIRE(slab_shrink(caches[number]) == empty);
	REQUIRE(caches[number]->slabs == slabs - empty && list_is_empty(&caches[number]->empty));
	REQUIRE(page_free_count() == free + empty);
}

/* Each slab in the list that its objects ask for, and sums that are right. */
static void model_lists(uint32_t number)
{
	const struct slab_cache *cache = caches[number];
	const struct list *lists[] = { &cache->empty, &cache->partial, &cache->full };
	uint32_t slabs = 0, used = 0, own = 0;

	for (unsigned i = 0; i < 3; i++)
		for (const struct list *link = lists[i]->next; link != lists[i];
		     link = link->next) {
			const struct slab *slab = list_entry(link, struct slab, link);

			REQUIRE(slabs++ < MOST && slab_of(slab) == slab && slab->cache == cache);
			REQUIRE(slab->used == 0 ? i == 0
						: i == (slab->used == cache->count ? 2 : 1));
			used += slab->used;
		}
	for (uint32_t n = 0; n < taken_count; n++)
		own += taken[n].cache == number;
	REQUIRE(slabs == cache->slabs && used == cache->used && used == own);
}

/* Random operations: answers the lines that do not hold, with the round. At most `most` objects. */
void random_operations(uint32_t seed, uint32_t rounds, uint32_t most)
{
	struct random random = { seed };

	for (uint32_t round = 0; round < rounds && !answer_count; round++) {
		uint32_t likely = round / 4000 % 2 ? 4 : 6; /* tenths */
		uint32_t number = random_below(&random, 2);

		if (random_below(&random, 500) == 0)
			model_shrink(number);
		else if (taken_count < most && random_below(&random, 10) < likely)
			model_take(number, round);
		else if (taken_count > 0)
			model_give(random_below(&random, taken_count));
		if (round % 1000 == 0)
			model_lists(number);
		if (answer_count)
			answer(round);
	}
	while (taken_count > 0 && !answer_count)
		model_give(taken_count - 1);
}

/* ---- caches ---- */

/* The names of all caches, in order. */
void answer_names(void)
{
	for (const struct list *link = slab_caches.next; link != &slab_caches; link = link->next)
		answer((uintptr_t)list_entry(link, struct slab_cache, link)->name);
}

/* A cache is in a slab of the first one, which is in none. */
void answer_homes(void)
{
	for (const struct list *link = slab_caches.next; link != &slab_caches; link = link->next)
		answer(slab_of(list_entry(link, struct slab_cache, link)) != NULL);
}
