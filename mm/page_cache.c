/*
 * Page caches: each has the pages of one file, in a tree.
 *
 *	clean	read-only in every space		may be given back (mm/second_chance.c)
 *	dirty	a shared area may write to it		is written back first (page_cache_sync)
 *
 * A page becomes dirty by a fault: an area may write to a page only after it has asked for it with
 * `write`. Writing back takes that right away again, so the next write is seen, too.
 *
 * A page has a reference of its cache, one of each entry that maps it, and one of each task that
 * works on it at the moment: that pins it.
 */
#include "mm/page_cache.h"

#include "kernel/lib/errno.h"
#include "kernel/task/task.h"
#include "mm/reverse_map.h"
#include "mm/page_alloc.h"
#include "mm/page_table.h"
#include "mm/pool.h"

static struct pool cached_pages = POOL_INITIALIZER(struct cached_page);
struct list page_cache_ring = LIST_EMPTY(page_cache_ring);

struct cached_page *page_cache_insert(struct page_cache *cache, uint32_t index, struct page *page)
{
	struct cached_page *cached = pool_alloc(&cached_pages);

	if (!cached)
		return NULL;
	cached->node.key = index;
	cached->cache = cache;
	cached->page = page;
	tree_insert(&cache->pages, &cached->node);
	list_append(&page_cache_ring, &cached->in_ring);
	return cached;
}

uint32_t page_cache_pages(void)
{
	return cached_pages.used;
}

uint32_t page_cache_major_faults;

void page_cache_count_major(void)
{
	page_cache_major_faults++;
	current->counts.major_faults++;
	current->counts.minor_faults--;
}

void page_cache_forget(struct cached_page *cached)
{
	tree_remove(&cached->cache->pages, &cached->node);
	list_remove(&cached->in_ring);
	page_release(cached->page);
	pool_free(&cached_pages, cached);
}

/* EXERCISE 6.5 (files in memory): see mm/page_cache.h and mm/memory_object.h for the contracts.

   - page_cache_get: the operation `page` of a cache's object.
   - page_cache_clean, page_cache_sync, page_cache_cut.
   - given: page_cache_find, page_cache_insert, page_cache_forget; object_clean and object_unmap,
     which go through all areas of the object (mm/reverse_map.h).

   Pitfalls: reading sleeps. Meanwhile another task may have read the same page, and there must
   never be two for one number; or the file may have been cut, and may even have grown again: what
   was read is of before (`cuts` counts them), so it is read once more. A page that a program writes
   to while it is being written back must not be clean afterwards: which step comes first? A page
   beyond the end does not exist, and is not read. A write-back that fails leaves the page dirty,
   and the others are written all the same. */
/* SOLUTION 6.5 { */
/* Reads a page that is not there, and puts it into the cache, unless somebody was faster, or it is
 * of a file that was cut meanwhile. */
static int bring(struct page_cache *cache, uint32_t index)
{
	uint32_t cuts = cache->cuts;
	struct page *page;
	int error = cache->ops->read(cache, index, &page);

	if (error)
		return error == -ENOMEM ? error : -EIO;
	if (!page_cache_find(cache, index) && cache->cuts == cuts &&
	    index < cache->ops->count(cache)) {
		if (page_cache_insert(cache, index, page))
			return 0;
		error = -ENOMEM;
	}
	page_release(page);
	return error;
}

int page_cache_get(struct memory_object *object, uint32_t index, bool write, struct page **page)
{
	struct page_cache *cache = (struct page_cache *)object;
	struct cached_page *cached = page_cache_find(cache, index);

	while (!cached && index < cache->ops->count(cache)) {
		int error = bring(cache, index);

		if (error)
			return error;
		cached = page_cache_find(cache, index);
	}
	if (!cached)
		return -EIO;
	cached->is_dirty |= write;
	page_hold(cached->page);
	*page = cached->page;
	return 0;
}

uint32_t page_cache_clean(struct page_cache *cache, uint32_t *first, uint32_t end,
			  struct cached_page **run, uint32_t most)
{
	struct tree_node *node;
	uint32_t next = *first, count = 0;

	while (count < most && next < end && (node = tree_at_least(cache->pages, next)) &&
	       node->key < end) {
		struct cached_page *cached = (struct cached_page *)node;

		if (count > 0 && (node->key != next || !cached->is_dirty))
			break;
		next = node->key + 1;
		if (!cached->is_dirty)
			continue;
		cached->is_dirty = false;
		object_clean(&cache->object, node->key, cached->page);
		run[count++] = cached;
	}
	*first = next - count;
	return count;
}

/* The page is clean before it is written back: a write from then on makes it dirty again. */
static int write_page(struct page_cache *cache, uint32_t index, struct page *page)
{
	struct cached_page *cached;

	page_hold(page);
	int error = cache->ops->write(cache, index, page_address(page));

	page_release(page);
	if (error && (cached = page_cache_find(cache, index)))
		cached->is_dirty = true;
	return error;
}

/* By page numbers: while one page is written, others may come and go. */
int page_cache_sync(struct page_cache *cache, uint32_t first, uint32_t end)
{
	struct cached_page *cached;
	int error = 0;

	for (; page_cache_clean(cache, &first, end, &cached, 1) > 0; first++) {
		int failed = write_page(cache, first, cached->page);

		error = error ? error : failed;
	}
	return error;
}

void page_cache_cut(struct page_cache *cache, uint32_t first)
{
	struct tree_node *node;

	cache->cuts++;
	object_unmap(&cache->object, first, UINT32_MAX);
	while ((node = tree_at_least(cache->pages, first)))
		page_cache_forget((struct cached_page *)node);
}
/* } SOLUTION 6.5 */

/* ---- the object ---- */

static void cache_hold(struct memory_object *object)
{
	((struct page_cache *)object)->references++;
}

static void cache_release(struct memory_object *object)
{
	struct page_cache *cache = (struct page_cache *)object;

	if (cache->references == 1)
		page_cache_sync(cache, 0, UINT32_MAX);
	if (--cache->references > 0) /* while it was written back, a new reference was taken */
		return;
	page_cache_cut(cache, 0);
	cache->ops->release(cache);
}

static int cache_sync(struct memory_object *object, uint32_t first, uint32_t end)
{
	return page_cache_sync((struct page_cache *)object, first, end);
}

static void cache_cut(struct memory_object *object, uint32_t first)
{
	page_cache_cut((struct page_cache *)object, first);
}

void page_cache_initialize(struct page_cache *cache, const struct page_cache_ops *ops)
{
	static const struct memory_object_ops object_ops = {
		.page = page_cache_get,
		.hold = cache_hold,
		.release = cache_release,
		.sync = cache_sync,
		.cut = cache_cut,
	};

	*cache = (struct page_cache){ .ops = ops, .references = 1 };
	object_initialize(&cache->object, &object_ops);
}
