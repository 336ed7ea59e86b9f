/*
 * Page caches: the pages of a file that are in memory, for areas that map them. (A file system
 * that has its files in memory anyway gives areas those pages, and needs none.)
 */
#pragma once

#include "kernel/lib/tree.h"
#include "mm/memory_object.h"

struct cached_page;
struct page_cache;

/* The file of a cache. Pages are numbered from 0; the bytes of a page after the file's end are
 * zero. */
struct page_cache_ops {
	/* Gives a page with its contents, and with a reference for the cache. It may put others
	 * into the cache, too (page_cache_insert). Returns 0 or a negated errno. May sleep. */
	int (*read)(struct page_cache *cache, uint32_t index, struct page **page);
	/* Writes a page back. Returns 0 or a negated errno. May sleep. NULL for a file that cannot
	 * be written, or that has its pages from page_cache_clean. */
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

/* memory_object_ops's page, for the object of a cache. */
int page_cache_get(struct memory_object *object, uint32_t index, bool write, struct page **page);

/* Puts a page into the cache, which has none of this number, and takes over the caller's reference.
 * Does not sleep. NULL without memory. */
struct cached_page *page_cache_insert(struct page_cache *cache, uint32_t index, struct page *page);

/* Makes the first dirty one of pages *first to `end` - 1 clean, and those that follow it without a
 * gap; at most `most`. Then the next write to one of them, in whatever space, is a fault. Returns
 * how many; *first is the first one's number, and run[] has them: until the caller sleeps. */
uint32_t page_cache_clean(struct page_cache *cache, uint32_t *first, uint32_t end,
			  struct cached_page **run, uint32_t most);

/* Writes the dirty ones of pages `first` to `end` - 1 back: msync. Those that fail stay dirty.
 * Returns 0 or the first error. */
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

struct cached_page {
	struct tree_node node; /* in its cache's tree, by its number in the file */
	struct page_cache *cache;
	struct page *page;
	struct list in_ring;
	/* Written to since it was last written back, by a shared area or a file's owner; and where,
	 * if that matters to the owner. */
	uint8_t is_dirty, parts;
};

/* The page of this number, or NULL. Each read of a file asks, so it is inline. */
static inline struct cached_page *page_cache_find(const struct page_cache *cache, uint32_t index)
{
	struct tree_node *node = cache->pages;

	while (node && node->key != index)
		node = index < node->key ? node->left : node->right;
	return (struct cached_page *)node;
}

/* ---- for mm's own files ---- */

/* All pages of all caches, by in_ring. */
extern struct list page_cache_ring;

/* Takes a page that no entry maps any more out of its cache, and frees it. */
void page_cache_forget(struct cached_page *cached);
