/* mm/kmalloc.c and mm/kmalloc_debug.c against a model: each object's bytes, and a count. */
#include <stdlib.h>
#include <string.h>

#include "mm/kmalloc.h"
#include "mm/kmalloc_debug.h"
#include "mm/page.h"
#include "mm/page_alloc.h"
#include "mm/slab.h"
#include "mm/zones.h"
#include "tests/host/mm/machine.h"

#define OBJECTS	   1500u
#define QUARANTINE 64

static struct object {
	uint8_t *bytes;
	uint32_t size;
	uint8_t stamp;
} objects[OBJECTS];
static uint32_t count;

static void require_bytes(const struct object *object, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		REQUIRE(object->bytes[i] == (uint8_t)(object->stamp + i),
			"byte %u of an object of %u was overwritten", i, object->size);
}

static void fill(struct object *object, struct random *random)
{
	REQUIRE((uintptr_t)object->bytes % 16 == 0, "%p is not aligned", object->bytes);
	REQUIRE(kmalloc_size(object->bytes) >= object->size, "%u bytes of %u",
		kmalloc_size(object->bytes), object->size);
	object->stamp = random_next(random);
	for (uint32_t i = 0; i < object->size; i++)
		object->bytes[i] = object->stamp + i;
}

/* Small ones, mostly. */
static uint32_t random_size(struct random *random)
{
	static const uint32_t bounds[] = { 20, 200, 200, 2200, 2200, 20000 };

	return random_below(random, bounds[random_below(random, 6)]);
}

static void take(struct random *random)
{
	struct object object = { .size = random_size(random) };

	object.bytes = kmalloc(object.size);
	if (!object.bytes)
		return;
	fill(&object, random);
	objects[count++] = object;
}

static void give(uint32_t index)
{
	struct object object = objects[index];

	require_bytes(&object, object.size);
	objects[index] = objects[--count];
	kfree(object.bytes);
}

static void change(struct object *object, struct random *random)
{
	uint32_t size = random_size(random), kept = size < object->size ? size : object->size;
	uint8_t *bytes = krealloc(object->bytes, size);

	require_bytes(bytes ? &(struct object){ bytes, size, object->stamp } : object,
		      bytes ? kept : object->size);
	if (!bytes)
		return;
	object->bytes = bytes;
	object->size = size;
	fill(object, random);
}

static void begin(bool checked)
{
	machine_start_pc(16);
	kmalloc_initialize();
	if (checked)
		kmalloc_debug_enable();
}

/* Pages that are free, or a slab's, or an object's: always the same number. With checks what is in
 * quarantine is not known. */
static uint32_t account(bool checked)
{
	uint32_t pages = page_free_count();

	for (const struct list *link = slab_caches.next; link != &slab_caches; link = link->next)
		pages += list_entry(link, struct slab_cache, link)->slabs;
	for (uint32_t i = 0; i < count && !checked; i++)
		if (!slab_of(objects[i].bytes))
			pages += kmalloc_size(objects[i].bytes) / PAGE_SIZE;
	return pages;
}

/* Gives back all that is empty, after nothing of before is in quarantine. */
static void settle(void)
{
	for (uint32_t i = 0; i < 2 * QUARANTINE; i++)
		kfree(kmalloc(0));
	for (const struct list *link = slab_caches.next; link != &slab_caches; link = link->next)
		slab_shrink(list_entry(link, struct slab_cache, link));
}

static void random_operations(struct random *random, uint32_t rounds, bool checked)
{
	begin(checked);
	uint32_t pages = account(false);

	for (unit_round = 0; unit_round < rounds; unit_round++) {
		uint32_t what = random_below(random, 10), likely = unit_round / 5000 % 2 ? 4 : 6;

		if (random_below(random, 200) == 0)
			allocation_fails_in = 1;
		if (what < likely && count < OBJECTS)
			take(random);
		else if (what == 9 && count > 0)
			change(&objects[random_below(random, count)], random);
		else if (count > 0)
			give(random_below(random, count));
		allocation_fails_in = 0;
		REQUIRE(checked || account(false) == pages, "%u pages, not %u", account(false),
			pages);
		if (unit_round % 1000 == 0) {
			machine_audit();
			kmalloc_debug_check();
		}
	}
	while (count > 0)
		give(random_below(random, count));
	machine_audit();
	settle();
	REQUIRE(account(true) == pages, "%u pages are lost", pages - account(true));
}

static void plain(struct random *random, uint32_t rounds)
{
	random_operations(random, rounds, false);
}

static void checked(struct random *random, uint32_t rounds)
{
	random_operations(random, rounds, true);
}

static void sizes(struct random *random, uint32_t rounds)
{
	(void)rounds;
	begin(random_below(random, 2));
	for (uint32_t size = 0; size < 9000; size++) {
		struct object object = { kmalloc(size), size, 0 };

		REQUIRE(object.bytes, "no object of %u", size);
		fill(&object, random);
		require_bytes(&object, size);
		kfree(object.bytes);
	}
	for (uint32_t size = 1; size < KMALLOC_LARGEST; size *= 2) {
		void *object = kmalloc(size);

		REQUIRE(object, "no object of %u", size);
		kfree(object);
	}
	void *large = kmalloc(KMALLOC_LARGEST);

	REQUIRE(large, "not the largest");
	kfree(large);
	REQUIRE(!kmalloc(5u << 20) && !kmalloc(1u << 31) && !kmalloc(UINT32_MAX), "too much");
	kfree(NULL);
	machine_audit();
}

/* ---- what is reported ---- */

static uint8_t *victim;
static uint32_t victim_size;

static void overrun(void *argument)
{
	(void)argument;
	victim[victim_size]++;
	kfree(victim);
}

static void underrun(void *argument)
{
	(void)argument;
	victim[-1]++;
	kfree(victim);
}

static void twice(void *argument)
{
	(void)argument;
	kfree(victim);
	kfree(victim);
}

static void use_after_free(void *argument)
{
	(void)argument;
	kfree(victim);
	victim[victim_size / 2]++;
	for (unsigned i = 0; i < QUARANTINE; i++)
		kfree(kmalloc(1));
}

static void late_check(void *argument)
{
	(void)argument;
	kfree(victim);
	victim[0] = 0;
	kmalloc_debug_check();
}

static void inside(void *argument)
{
	(void)argument;
	kfree(victim + 4);
}

static void never(void *argument)
{
	kfree(argument);
}

static void require_report(void (*what)(void *), void *argument, const char *words)
{
	const char *said = unit_panic_of(what, argument);

	REQUIRE(said && strstr(said, words), "said \"%s\", not \"%s\"", said ? said : "", words);
	machine_audit();
}

/* For every size: what an object is not, is found. */
static void reports(struct random *random, uint32_t rounds)
{
	static void (*const acts[])(void *) = { overrun,	underrun,   twice,
						use_after_free, late_check, inside };
	static const char *const words[] = { "beyond the object",  "before the object",
					     "freed twice",	   "after it was freed",
					     "after it was freed", "inside" };
	uint32_t act = random_below(random, 6);

	(void)rounds;
	begin(true);
	require_report(never, page_alloc(0), "before the object");
	require_report(never, (char *)page_alloc(1) + PAGE_SIZE, "no object");
	require_report(never, page_array, "no object");
	require_report(never, direct_map(15u << 24), "no object");
	victim_size = 8 + random_below(random, 9000);
	victim = kmalloc(victim_size);
	if (act == 5 && !slab_of(victim))
		act = 0;
	require_report(acts[act], NULL, words[act]);
}

const struct unit_test kmalloc_tests[] = {
	{ "kmalloc_plain", plain },
	{ "kmalloc_checked", checked },
	{ "kmalloc_sizes", sizes },
	{ "kmalloc_reports", reports },
	{ NULL, NULL },
};
