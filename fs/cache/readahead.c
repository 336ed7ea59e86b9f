/*
 * Read-ahead: a miss brings a run of pages.
 *
 * A reader that misses where its last run ended reads sequentially, and gets twice as
 * many pages as last time, up to CACHED_RUN; everybody else gets one. 8 pages read one by one:
 *
 *	miss at	0	read 0-3	(the beginning of a file is often read on)
 *	miss at 4	read 4-11	next miss at 12: 16 pages
 *
 * A run is read without any lock, and then put into the cache page by page without sleeping. If
 * the disk's contents were changed meanwhile (`changes`), or pages of it are on their way to the
 * disk and not in the cache any more, the run is out of date, and read again.
 */
#include "fs/cache/write_back.h"
#include "kernel/lib/errno.h"
#include "mm/page_alloc.h"

#define FIRST_WINDOW 4u	 /* pages, at the beginning of a file */
#define READ_TRIES   64u /* of a run that is written past the cache all the time */

/* How many pages a miss at `index` reads: not beyond the end, nor pages that are there. */
static uint32_t readahead_at(struct cached_file *file, uint32_t index)
{
	const struct tree_node *next = tree_at_least(file->cache.pages, index);
	uint32_t end = pages_of(file->ops->size(file)), count;

	if (index == file->next && index > 0)
		file->window = file->window * 2 < RUN_PAGES ? file->window * 2 : RUN_PAGES;
	else
		file->window = index == 0 ? FIRST_WINDOW : file->least;
	if (file->is_random)
		file->window = 1;
	if (next && next->key < end)
		end = next->key;
	count = file->window < end - index ? file->window : end - index;
	file->next = index + count;
	return count;
}

/* Reads a run, as it is on the disk when this returns. If it changed meanwhile, or is about to,
 * again, and nobody may write back then; what is written past the cache still may be. */
static int read_run(struct cached_file *file, uint32_t index, void *run, uint32_t *count)
{
	uint64_t offset = (uint64_t)index << PAGE_SHIFT;
	uint32_t changes = file->changes, tries = READ_TRIES;
	int error = file->ops->read(file, offset, run, *count << PAGE_SHIFT);

	if (error && *count > 1) { /* what was read ahead is nobody's error */
		*count = 1;
		error = file->ops->read(file, offset, run, PAGE_SIZE);
	}
	if (error || (changes == file->changes &&
		      (index >= file->run_end || index + *count <= file->run_first)))
		return error;
	mutex_lock(&file->write_back);
	do {
		changes = file->changes;
		error = file->ops->read(file, offset, run, *count << PAGE_SHIFT);
	} while (!error && changes != file->changes && --tries > 0);
	mutex_unlock(&file->write_back);
	return error;
}

/* Makes single pages of a block. Returns how many. */
static uint32_t split_run(struct page *first)
{
	uint32_t count = 1u << first->order;

	for (uint32_t i = 0; i < count; i++)
		first[i] =
		    (struct page){ .references = 1, .state = PAGE_USED, .owner = first->owner };
	return count;
}

/* Puts the first `count` pages of a run into the cache, but for the very first, and gives back what
 * is there already, or beyond the end. Does not sleep. */
static void insert_run(struct cached_file *file, uint32_t index, struct page *run, uint32_t count)
{
	uint32_t pages = split_run(run), end = pages_of(file->ops->size(file));

	for (uint32_t i = 1; i < pages; i++)
		if (i >= count || index + i >= end || page_cache_find(&file->cache, index + i) ||
		    !page_cache_insert(&file->cache, index + i, run + i))
			page_release(run + i);
}

int cached_file_read_miss(struct page_cache *cache, uint32_t index, struct page **page)
{
	struct cached_file *file = (struct cached_file *)cache;
	uint32_t count = readahead_at(file, index), length = count << PAGE_SHIFT;
	void *run = run_alloc(&length);

	if (!run)
		return -ENOMEM;
	count = length >> PAGE_SHIFT;
	int error = read_run(file, index, run, &count);

	if (error) {
		run_free(run, length);
		return error;
	}
	*page = page_of(run);
	insert_run(file, index, *page, count);
	return 0;
}
