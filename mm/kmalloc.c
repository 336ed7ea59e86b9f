/*
 * Memory of any size: a cache of objects for each of fourteen sizes, and whole pages above them.
 *
 *	16 32 48 64 96 128 192 256 336 496 672 1008 1344 2016	then 4 KiB, 8 KiB, ... 4 MiB
 *
 * A size is rounded up to the next of these: from 33 to 2016 bytes at most a third of the space is
 * wasted, above that up to half. The odd sizes are chosen so that 12, 8, 6, 4, 3 and 2 of them fit
 * into a page next to the struct slab. kfree is not told the size: the page array knows the slab
 * that an address is in, or the order of its block.
 *
 * In front of each cache is a magazine: up to ROUNDS objects that were freed last. Most calls only
 * take from it or put into it, in a few instructions, and what they take is still in the
 * processor's cache (Bonwick and Adams, "Magazines and Vmem", USENIX 2001). For the slab cache the
 * objects in a magazine are in use.
 */
#include "mm/kmalloc.h"

#include "kernel/cpu/interrupts.h"
#include "kernel/lib/string.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"
#include "mm/page_alloc.h"
#include "mm/slab.h"

#define UNIT   16u /* all sizes are multiples, and all objects are aligned to it */
#define ROUNDS 16

static const uint16_t sizes[] = { 16,  32,  48,	 64,  96,   128,  192,
				  256, 336, 496, 672, 1008, 1344, SLAB_LARGEST };

#define CLASSES (sizeof(sizes) / sizeof(sizes[0]))

struct magazine {
	struct slab_cache *cache;
	uint32_t count;
	void *rounds[ROUNDS];
};

static struct magazine magazines[CLASSES];

/* The magazine for each size, in UNITs, rounded up. */
static struct magazine *magazine_for[SLAB_LARGEST / UNIT + 1];

/* The object that was put into the magazine last; or a free one of the cache, or NULL. */
static void *magazine_take(struct magazine *magazine)
{
	bool enabled = interrupts_disable();
	int32_t last = magazine->count - 1;

	if (last >= 0) {
		magazine->count = last;
		void *object = magazine->rounds[last];

		interrupts_restore(enabled);
		return object;
	}
	interrupts_restore(enabled);
	return slab_alloc(magazine->cache);
}

/* If the magazine is full the object goes back to its cache. */
static void magazine_put(struct magazine *magazine, void *object)
{
	bool enabled = interrupts_disable(), fits = magazine->count < ROUNDS;

	if (fits)
		magazine->rounds[magazine->count++] = object;
	interrupts_restore(enabled);
	if (!fits)
		slab_free(magazine->cache, object);
}

/* EXERCISE 5.5 (kmalloc that tells on you, part 1): sizes.

   kmalloc_plain, kfree_plain and size_plain are kmalloc, kfree and kmalloc_size as long as nobody
   checks; krealloc uses the three pointers, so that it works either way (mm/kmalloc.h).
   kmalloc_initialize fills magazines and magazine_for: UNIT n is served by the smallest class of at
   least n * UNIT bytes.

   Pitfalls: sizes 0, 1, SLAB_LARGEST + 1, and those that are more than 4 GiB when rounded up. The
   checks of part 2 ask kmalloc_plain for more than KMALLOC_LARGEST: it serves up to 4 MiB. kfree of
   NULL. A krealloc that fails leaves the old object; one that shrinks copies no more than fits.

   Speed: kmalloc and kfree of a small object together have at most 60 instructions. */
/* SOLUTION 5.5 { */
static __attribute__((noinline)) void *allocate_pages(uint32_t size)
{
	unsigned order = 0;

	while (order < ORDERS && PAGE_SIZE << order < size)
		order++;
	return order < ORDERS ? page_alloc(order) : NULL;
}

static void *kmalloc_plain(uint32_t size)
{
	if (size > SLAB_LARGEST)
		return allocate_pages(size);
	return magazine_take(magazine_for[(size + UNIT - 1) / UNIT]);
}

static void kfree_plain(void *object)
{
	if (slab_has(object))
		magazine_put(slab_of(object)->cache->magazine, object);
	else if (object)
		page_free(object, page_at(object)->order);
}

static uint32_t size_plain(const void *object)
{
	struct slab *slab = slab_of(object);

	return slab ? slab->cache->size : PAGE_SIZE << page_at(object)->order;
}

void *krealloc(void *object, uint32_t size)
{
	uint32_t kept = object ? kmalloc_size(object) : 0;
	void *other = kmalloc(size);

	if (other && object) {
		memcpy(other, object, kept < size ? kept : size);
		kfree(object);
	}
	return other;
}

void kmalloc_initialize(void)
{
	static char names[CLASSES][sizeof("kmalloc-2016")];
	uint32_t unit = 0;

	slab_initialize();
	for (unsigned class = 0; class < CLASSES; class ++) {
		struct magazine *magazine = &magazines[class];

		snprintk(names[class], sizeof(names[class]), "kmalloc-%u", sizes[class]);
		magazine->cache = slab_cache_create(names[class], sizes[class], UNIT, NULL);
		if (!magazine->cache)
			panic("no memory for %s", names[class]);
		magazine->cache->magazine = magazine;
		while (unit * UNIT <= sizes[class])
			magazine_for[unit++] = magazine;
	}
}
/* } SOLUTION 5.5 */

void *(*kmalloc)(uint32_t size) = kmalloc_plain;
void (*kfree)(void *object) = kfree_plain;
uint32_t (*kmalloc_size)(const void *object) = size_plain;
