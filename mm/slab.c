/*
 * Slabs: pages cut into objects of one size.
 *
 *	| struct slab, map | colour |  object 0  |  object 1  | ... |  object n - 1  | rest |
 *
 * A slab with some objects handed out is used first, so that the others stay full or empty; then an
 * empty one; only then a new page. Why a bitmap, and not a list through the objects: a free
 * object keeps what its constructor wrote (Bonwick, "The Slab Allocator", USENIX 1994), and an
 * object that is freed twice is seen.
 *
 * Colour: objects of one slab begin `alignment` bytes further than those of the slab before, as
 * long as there is room at the end of the page, so that first objects do not all compete for the
 * same lines of the processor's cache. It costs no memory.
 *
 * Invariants: slab->used is the number of bits in its map; a slab is in the list `full` if all its
 * objects are handed out, in `empty` if none is, else in `partial`; its page is PAGE_SLAB, and no
 * other page is. Interrupts are disabled while these change, but not for page_alloc, which must
 * know whether the caller can wait, and not for constructors, which may take long.
 */
#include "mm/slab.h"

#include "kernel/cpu/interrupts.h"
#include "kernel/lib/string.h"
#include "kernel/report/panic.h"
#include "mm/page_alloc.h"

#define BITS 32 /* of a word of the map */

struct list slab_caches = LIST_EMPTY(slab_caches);

/* The cache of all other caches. */
static struct slab_cache caches;

void *slab_object(const struct slab *slab, const void *address)
{
	uint32_t size = slab->cache->size;
	uint32_t index = ((const char *)address - slab->objects) / size;

	if ((const char *)address < slab->objects || index >= slab->cache->count)
		return NULL;
	return slab->map[index / BITS] >> index % BITS & 1 ? slab->objects + index * size : NULL;
}

/* EXERCISE 5.4 (slabs): the functions of mm/slab.h that are not above.

   Pitfalls: the map has as many words as the objects need; it and the padding for the alignment
   come before the first object. `colours` counts the start without an offset, too; after the last
   colour the first one is used again. The constructor runs once for each object, not once for each
   slab_alloc. `caches` itself does not come from a cache. While slab_alloc gets a page, an
   interrupt may have freed an object of this cache: that does no harm. Nothing is lost when
   page_alloc fails. */
/* SOLUTION 5.4 { */
/* ---- a cache's form ---- */

/* Where objects begin without a colour, if there are `count`. */
static uint32_t header(const struct slab_cache *cache, uint32_t count)
{
	uint32_t words = (count + BITS - 1) / BITS;

	return round_up(sizeof(struct slab) + words * sizeof(uint32_t), cache->alignment);
}

static void form(struct slab_cache *cache, const char *name, uint32_t size, uint32_t alignment,
		 void (*construct)(void *))
{
	*cache = (struct slab_cache){
		.name = name,
		.size = round_up(size, alignment),
		.alignment = alignment,
		.construct = construct,
		.partial = LIST_EMPTY(cache->partial),
		.full = LIST_EMPTY(cache->full),
		.empty = LIST_EMPTY(cache->empty),
	};
	cache->count = PAGE_SIZE / cache->size;
	while (header(cache, cache->count) + cache->count * cache->size > PAGE_SIZE)
		cache->count--;
	uint32_t rest = PAGE_SIZE - header(cache, cache->count) - cache->count * cache->size;

	cache->colours = rest / alignment + 1;
	bool enabled = interrupts_disable();

	list_append(&slab_caches, &cache->link);
	interrupts_restore(enabled);
}

void slab_initialize(void)
{
	form(&caches, "slab_cache", sizeof(caches), sizeof(void *), NULL);
}

/* ---- slabs ---- */

/* A new slab, in no list yet, with this colour. NULL without memory. */
static struct slab *grow(struct slab_cache *cache, uint32_t colour)
{
	struct slab *slab = page_alloc(0);

	if (!slab)
		return NULL;
	memset(slab, 0, header(cache, cache->count));
	slab->cache = cache;
	slab->objects = (char *)slab + header(cache, cache->count) + colour * cache->alignment;
	for (uint32_t index = 0; cache->construct && index < cache->count; index++)
		cache->construct(slab->objects + index * cache->size);
	return slab;
}

/* Moves a slab from one of its cache's lists to the list that matches its count. */
static void file(struct slab *slab)
{
	struct slab_cache *cache = slab->cache;

	list_remove(&slab->link);
	if (slab->used == cache->count)
		list_append(&cache->full, &slab->link);
	else
		list_append(slab->used ? &cache->partial : &cache->empty, &slab->link);
}

/* ---- objects ---- */

/* The first free object of a slab that has one. */
static void *take_object(struct slab *slab)
{
	struct slab_cache *cache = slab->cache;
	uint32_t word = 0;

	while (slab->map[word] == UINT32_MAX)
		word++;
	uint32_t bit = __builtin_ctz(~slab->map[word]);

	slab->map[word] |= 1u << bit;
	cache->used++;
	if (++slab->used == 1 || slab->used == cache->count)
		file(slab);
	return slab->objects + (word * BITS + bit) * cache->size;
}

void *slab_alloc(struct slab_cache *cache)
{
	bool enabled = interrupts_disable();
	struct list *list = list_is_empty(&cache->partial) ? &cache->empty : &cache->partial;
	void *object = NULL;

	if (list_is_empty(list)) {
		uint32_t colour = cache->colour++ % cache->colours;

		interrupts_restore(enabled);
		struct slab *slab = grow(cache, colour);

		interrupts_disable();
		if (slab) {
			page_at(slab)->state = PAGE_SLAB;
			list_append(list, &slab->link);
			cache->slabs++;
		}
	}
	if (!list_is_empty(list))
		object = take_object(list_entry(list->next, struct slab, link));
	interrupts_restore(enabled);
	return object;
}

void slab_free(struct slab_cache *cache, void *object)
{
	bool enabled = interrupts_disable();
	struct slab *slab = slab_of(object);

	if (!slab || slab->cache != cache)
		panic("slab_free: the address is in no slab of %s", cache->name);
	if (slab_object(slab, object) != object)
		panic("slab_free: no object in use begins at byte %u of a slab of %s",
		      (uintptr_t)object % PAGE_SIZE, cache->name);
	uint32_t index = ((char *)object - slab->objects) / cache->size;

	slab->map[index / BITS] &= ~(1u << index % BITS);
	cache->used--;
	if (slab->used-- == cache->count || slab->used == 0)
		file(slab);
	interrupts_restore(enabled);
}

/* ---- caches ---- */

uint32_t slab_shrink(struct slab_cache *cache)
{
	bool enabled = interrupts_disable();
	uint32_t pages = 0;

	for (; !list_is_empty(&cache->empty); pages++) {
		void *page = cache->empty.next;

		list_remove(page);
		cache->slabs--;
		page_at(page)->state = PAGE_USED;
		page_free(page, 0);
	}
	interrupts_restore(enabled);
	return pages;
}

struct slab_cache *slab_cache_create(const char *name, uint32_t size, uint32_t alignment,
				     void (*construct)(void *))
{
	struct slab_cache *cache = slab_alloc(&caches);

	if (cache)
		form(cache, name, size, alignment, construct);
	return cache;
}

bool slab_cache_destroy(struct slab_cache *cache)
{
	bool enabled = interrupts_disable(), unused = cache->used == 0;

	if (unused)
		list_remove(&cache->link);
	interrupts_restore(enabled);
	if (unused) {
		slab_shrink(cache);
		slab_free(&caches, cache);
	}
	return unused;
}
/* } SOLUTION 5.4 */
