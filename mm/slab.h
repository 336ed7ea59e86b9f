/*
 * Objects of one size, cut from pages (slabs), with a constructor that runs once for each.
 *
 * Any context, interrupts enabled or disabled; no function here sleeps. Memory comes from
 * page_alloc, so the reserve is open to an interrupt (mm/zones.h).
 */
#pragma once

#include "mm/page.h"

#define SLAB_LARGEST 2016u /* bytes of an object: two are in a page */

/* A page that is cut into objects; this structure is at its start. The page is PAGE_SLAB. */
struct slab {
	struct list link; /* in one of its cache's three lists */
	struct slab_cache *cache;
	char *objects;	/* the first one */
	uint32_t used;	/* how many are handed out */
	uint32_t map[]; /* bit n is set if object n is handed out; others are 0 */
};

/* Objects of one kind, and where they are. */
struct slab_cache {
	const char *name;
	uint32_t size;			  /* from one object to the next, in bytes */
	uint32_t alignment;		  /* of every object, in bytes */
	uint32_t count;			  /* objects in a slab */
	uint32_t colours, colour;	  /* how many starts there are; slabs made, or tried */
	void (*construct)(void *);	  /* may be NULL */
	struct list partial, full, empty; /* slabs: some, all, none of their objects handed out */
	uint32_t slabs, used;		  /* of the whole cache: slabs, objects handed out */
	struct list link;		  /* in slab_caches */
	struct magazine *magazine;	  /* of kmalloc.c; NULL for any other cache */
};

/* All caches, the oldest first. */
extern struct list slab_caches;

/* Once, after page_array_initialize and before there is a cache. */
void slab_initialize(void);

/*
 * A cache of objects of `size` bytes (1 to SLAB_LARGEST), each aligned to `alignment` bytes (a
 * power of two from 4 to 64; sizes are rounded up to it). `name` must stay valid. `construct` is
 * called once for each object, when its slab is made, with interrupts as slab_alloc's caller has
 * them. An object is to be freed as it was constructed. Returns NULL without memory.
 */
struct slab_cache *slab_cache_create(const char *name, uint32_t size, uint32_t alignment,
				     void (*construct)(void *));

/* Frees the cache and its pages. Returns false, and nothing has changed, while objects are handed
 * out. */
bool slab_cache_destroy(struct slab_cache *cache);

/* An object, with what its constructor wrote or what was in it when it was freed; from a partial
 * slab if there is one, else from an empty one, else from a new one. NULL without memory. */
void *slab_alloc(struct slab_cache *cache);

/* Gives an object back; no byte of it changes. Panics, with the cache's name, on an address that is
 * not the start of an object of this cache, and on an object that is free. */
void slab_free(struct slab_cache *cache, void *object);

/* Gives the pages of the empty slabs back. Returns how many. */
uint32_t slab_shrink(struct slab_cache *cache);

/* Is the address in a slab? */
static inline bool slab_has(const void *address)
{
	uint32_t frame = physical_address(address) >> PAGE_SHIFT;

	return frame < page_frames && page_array[frame].state == PAGE_SLAB;
}

/* The slab that an address is in, or NULL. */
static inline struct slab *slab_of(const void *address)
{
	return slab_has(address) ? (struct slab *)((uintptr_t)address & -PAGE_SIZE) : 0;
}

/* The start of the object that an address in the slab is in; NULL if it is in none, or in one that
 * is free. */
void *slab_object(const struct slab *slab, const void *address);
