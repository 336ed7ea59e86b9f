/* mm/slab.c against a model that has a stamp in each object, and counts. */
#include <string.h>

#include "mm/page.h"
#include "mm/page_alloc.h"
#include "mm/slab.h"
#include "mm/zones.h"
#include "tests/host/mm/machine.h"
#include "tests/host/mm/shadow/kernel/cpu/interrupts.h"

#define OBJECTS 3000u

static struct slab_cache *caches[2];

/* Handed out. */
static struct object {
	uint32_t *words;
	uint32_t cache, stamp;
} objects[OBJECTS];
static uint32_t count, stamps, constructed[2];

#define CONSTRUCTED 0x600dc0deu

/* The first word of an object of the second cache is its constructor's, and always is. */
static void construct(void *object)
{
	*(uint32_t *)object = CONSTRUCTED;
	constructed[1]++;
}

static void fill(const struct object *object)
{
	uint32_t words = caches[object->cache]->size / 4;

	for (uint32_t i = object->cache; i < words; i++)
		object->words[i] = object->stamp + i;
}

static void require_whole(const struct object *object)
{
	uint32_t words = caches[object->cache]->size / 4;

	REQUIRE(object->cache == 0 || object->words[0] == CONSTRUCTED, "not as constructed");
	for (uint32_t i = object->cache; i < words; i++)
		REQUIRE(object->words[i] == object->stamp + i, "an object was overwritten");
}

static uint32_t length_of(const struct list *list)
{
	uint32_t length = 0;

	for (const struct list *link = list->next; link != list; link = link->next)
		length++;
	return length;
}

/* Pages are slabs', or free: what the caches have is what is missing. */
static void require_account(uint32_t pages)
{
	uint32_t slabs = 0, of_cache[2] = { 0 };

	for (const struct list *link = slab_caches.next; link != &slab_caches; link = link->next)
		slabs += list_entry(link, struct slab_cache, link)->slabs;
	REQUIRE(page_free_count() + slabs == pages, "%u pages free, %u slabs, not %u",
		(uint32_t)page_free_count(), slabs, pages);
	for (uint32_t i = 0; i < count; i++)
		of_cache[objects[i].cache]++;
	for (unsigned i = 0; i < 2; i++)
		REQUIRE(caches[i]->used == of_cache[i], "%s: %u objects, not %u", caches[i]->name,
			caches[i]->used, of_cache[i]);
	REQUIRE(constructed[1] % caches[1]->count == 0, "%u constructed", constructed[1]);
}

/* A partial slab comes before an empty one, and that before a new one. */
static void take(uint32_t number)
{
	struct slab_cache *cache = caches[number];
	uint32_t partial = length_of(&cache->partial), empty = length_of(&cache->empty);
	uint32_t slabs = cache->slabs, made = constructed[1];
	struct object object = { slab_alloc(cache), number, stamps++ << 10 };

	REQUIRE(object.words, "no object");
	REQUIRE((uintptr_t)object.words % cache->alignment == 0, "%p is not aligned to %u",
		object.words, cache->alignment);
	REQUIRE(cache->slabs == slabs + (partial + empty == 0), "a new slab");
	REQUIRE(number == 0 || constructed[1] == made + (partial + empty ? 0 : cache->count),
		"%u objects were constructed", constructed[1] - made);
	if (partial)
		REQUIRE(length_of(&cache->empty) == empty, "an empty slab was preferred");
	fill(&object);
	objects[count++] = object;
}

static void give(uint32_t index)
{
	struct object object = objects[index];

	require_whole(&object);
	objects[index] = objects[--count];
	slab_free(caches[object.cache], object.words);
	for (uint32_t i = object.cache; i < caches[object.cache]->size / 4; i++)
		REQUIRE(object.words[i] == object.stamp + i, "slab_free changed the object");
}

static void begin(uint32_t first, uint32_t first_alignment, uint32_t second, uint32_t alignment)
{
	static bool running;

	if (!running) {
		machine_start_pc(16);
		slab_initialize();
	}
	running = true;
	caches[0] = slab_cache_create("first", first, first_alignment, NULL);
	caches[1] = slab_cache_create("second", second, alignment, construct);
	constructed[1] = 0;
}

static void end(uint32_t pages)
{
	while (count > 0)
		give(count - 1);
	for (unsigned i = 0; i < 2; i++) {
		uint32_t empty = length_of(&caches[i]->empty), slabs = caches[i]->slabs;

		REQUIRE(empty == slabs, "%u of %u slabs are empty", empty, slabs);
		REQUIRE(slab_cache_destroy(caches[i]), "a cache without objects was not destroyed");
	}
	REQUIRE(slab_shrink(list_entry(slab_caches.next, struct slab_cache, link)) == 1,
		"the cache of caches");
	REQUIRE(page_free_count() == pages, "%u pages are lost",
		pages - (uint32_t)page_free_count());
	machine_audit();
}

static void random_operations(struct random *random, uint32_t rounds)
{
	begin(40, 4, 100, 64);
	uint32_t pages = page_free_count() + 1; /* the slab of caches */

	for (unit_round = 0; unit_round < rounds; unit_round++) {
		uint32_t likely = unit_round / 5000 % 2 ? 4 : 6; /* tenths */

		if (random_below(random, 1000) == 0) {
			struct slab_cache *cache = caches[random_below(random, 2)];
			uint32_t empty = length_of(&cache->empty);

			REQUIRE(slab_shrink(cache) == empty, "not the empty ones");
			REQUIRE(list_is_empty(&cache->empty), "an empty slab is left");
		} else if (count < OBJECTS && random_below(random, 10) < likely)
			take(random_below(random, 2));
		else if (count > 0)
			give(random_below(random, count));
		require_account(pages);
		if (unit_round % 1000 == 0)
			machine_audit();
	}
	end(pages);
}

/* Every size and alignment: all that a few slabs hold, each object its own. */
static void shapes(struct random *random, uint32_t rounds)
{
	begin(4, 4, 4, 4);
	uint32_t pages = page_free_count() + 1;

	end(pages);
	for (unit_round = 1; unit_round <= rounds; unit_round++) {
		uint32_t size = 1 + random_below(random, SLAB_LARGEST);
		uint32_t alignment = 4u << random_below(random, 5);

		if (unit_round <= SLAB_LARGEST)
			size = unit_round;
		if (size + alignment > SLAB_LARGEST)
			alignment = 4;
		begin(size, alignment, 1 + random_below(random, 64), alignment);
		REQUIRE(caches[0]->size >= size && caches[0]->size % alignment == 0,
			"size %u of %u", caches[0]->size, size);
		uint32_t slabs = 3 + random_below(random, 5);

		for (uint32_t i = 0; i < caches[0]->count * slabs && count < OBJECTS - 20; i++)
			take(0);
		for (uint32_t i = 0; i < 20; i++)
			take(1);
		for (uint32_t i = 0; i < count; i++)
			require_whole(&objects[i]);
		machine_audit();
		end(pages);
	}
}

static void *wrong;

static void free_wrong(void *argument)
{
	slab_free(argument, wrong);
}

static void require_refused(struct slab_cache *cache, void *object)
{
	wrong = object;
	const char *said = unit_panic_of(free_wrong, cache);

	REQUIRE(said && strstr(said, cache->name), "%p in %s: said \"%s\"", object, cache->name,
		said ? said : "");
	machine_audit();
}

static void refusals(struct random *random, uint32_t rounds)
{
	(void)random, (void)rounds;
	begin(40, 4, 2016, 16);
	uint32_t pages = page_free_count() + 1;

	take(0), take(0), take(1);
	char *first = (char *)objects[0].words;

	require_refused(caches[1], first);
	require_refused(caches[0], first + 4);
	require_refused(caches[0], (char *)slab_of(first));
	require_refused(caches[0], first + 80);
	require_refused(caches[0], NULL);
	require_refused(caches[0], page_alloc(0));
	require_refused(caches[1], (char *)objects[2].words + 2 * 2016);
	REQUIRE(!slab_cache_destroy(caches[0]), "a cache with objects was destroyed");
	give(1);
	require_refused(caches[0], first + 40);
	machine_audit();
	end(pages - 1);
}

/* Without memory: nothing is lost, and what there is goes on. */
static void failures(struct random *random, uint32_t rounds)
{
	(void)random, (void)rounds;
	begin(1000, 8, 2000, 8);
	uint32_t pages = page_free_count() + 1;

	for (unit_round = 0; count + 10 < OBJECTS && unit_round < rounds; unit_round++) {
		allocation_fails_in = 1;
		if (list_is_empty(&caches[1]->partial))
			REQUIRE(!slab_alloc(caches[1]), "an object without a page");
		allocation_fails_in = 0;
		take(1);
		require_account(pages);
	}
	machine_audit();
	end(pages);
}

const struct unit_test slab_tests[] = {
	{ "slab_random", random_operations },
	{ "slab_shapes", shapes },
	{ "slab_refusals", refusals },
	{ "slab_failures", failures },
	{ NULL, NULL },
};
