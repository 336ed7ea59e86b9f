/*
 * Page caches: the pages of a file that are in memory, for areas that map them. (A file system
 * that has its files in memory anyway gives areas those pages, and needs none.)
 */
#pragma once

#include "kernel/lib/tree.h"
#include "mm/memory_object.h"

struct page_cache;

/* The file of a cache. Pages are numbered from 0; the bytes of a page after the file's end are
 * zero. */
struct page_cache_ops {
	/* Fill a page, or write it back. Return 0 or a negated errno. May sleep. write is NULL for
	 * a file that cannot be written. */
	int (*read)(struct page_cache *cache, uint32_t index, void *page);
	int (*write)(struct page_cache *cache, uint32_t index, const void *page);
	/* How many pages the file has at the moment. */
	uint32_t (*count)(const struct page_cache *cache);
	/* The last reference is gone. The cache may be freed. */
	void (*release)(struct page_cache *cache);
};

struct page_cache {
	struct memory_object object;	  /* first: the two have one address */
	const struct page_cache_ops *ops; /* of the file */
	struct tree_node *pages;
	uint32_t references, cuts; /* cuts: how often page_cache_cut was called */
};

/* An empty cache with one reference. */
void page_cache_initialize(struct page_cache *cache, const struct page_cache_ops *ops);

/* Writes the dirty ones of pages `first` to `end` - 1 back: msync. Then the next write to one of
 * them, in whatever space, is a fault, and makes it dirty again. Returns 0 or the first error. */
int page_cache_sync(struct page_cache *cache, uint32_t first, uint32_t end);

/* The file was cut: page `first` and those after it are removed from the cache and every space. */
void page_cache_cut(struct page_cache *cache, uint32_t first);

/* How many pages are in all caches. */
uint32_t page_cache_pages(void);

/* How many page faults had to read a page of a disk. page_cache_count_major counts one: it is the
 * current task's, and no minor fault of it. */
extern uint32_t page_cache_major_faults;
void page_cache_count_major(void);

/* Frees up to `count` clean pages of any caches that were not used lately. Returns how many. */
uint32_t page_cache_reclaim(uint32_t count);

/* ---- for mm's own files ---- */

struct cached_page {
	struct tree_node node; /* in its cache's tree, by its number in the file */
	struct page_cache *cache;
	struct page *page;
	struct list in_ring;
	/* Written to since it was last written back, by a shared area or a file's owner; and where,
	 * if that matters to the owner. */
	uint8_t is_dirty, parts;
};

/* All pages of all caches, by in_ring. */
extern struct list page_cache_ring;

/* Takes a page that no entry maps any more out of its cache, and frees it. */
void page_cache_forget(struct cached_page *cached);
