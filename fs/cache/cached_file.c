/*
 * Reading and writing through the pages of a cached file, or past them.
 *
 *	read	page there: copy. Not there: bring it, and the pages after it, with one request.
 *	write	page there: copy, dirty. Not there, and
 *			after the end		a page of zeros, no request
 *			all of it is written	copy into a page that is not in the cache yet: the
 *						copy may fail half-way, and then the old contents
 *						are needed after all
 *			a part is written	bring it
 *
 * Read-ahead: a reader that misses where its last run ended reads sequentially, and gets twice as
 * many pages as last time, up to CACHED_RUN; everybody else gets one. 8 pages read one by one:
 *
 *	miss at	0	read 0-3	(the beginning of a file is often read on)
 *	miss at 4	read 4-11	next miss at 12: 16 pages
 *
 * A run is read without any lock, and then put into the cache page by page without sleeping. If
 * the disk's contents were changed meanwhile (`changes`), or pages of it are on their way to the
 * disk and not in the cache any more, the run is out of date, and read again.
 */
#include "fs/cache/cached_file.h"

#include <stddef.h>

#include "drivers/disk/block.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"
#include "mm/page_table.h"

#define FIRST_WINDOW 4u	 /* pages, at the beginning of a file */
#define FAULT_WINDOW 8u	 /* for areas: a program's code is not read sequentially, but nearby */
#define READ_TRIES   64u /* of a run that is written past the cache all the time */
#define RUN_PAGES    (CACHED_RUN >> PAGE_SHIFT)

static struct cached_file *file_of_object(const struct memory_object *object)
{
	return (struct cached_file *)(uintptr_t)object;
}

static uint32_t pages_of(uint64_t size)
{
	return size < CACHED_FILE_MOST ? (uint32_t)((size + PAGE_SIZE - 1) >> PAGE_SHIFT)
				       : UINT32_MAX;
}

/* ---- runs ---- */

/* How many pages a miss at `index` reads, at most. */
static void set_readahead(struct cached_file *file, uint32_t index, uint32_t least)
{
	if (index == file->next && index > 0)
		file->window = file->window * 2 < RUN_PAGES ? file->window * 2 : RUN_PAGES;
	else
		file->window = index == 0 ? FIRST_WINDOW : least;
	if (file->is_random)
		file->window = 1;
}

/* How many it does: not beyond the end, nor pages that are there. */
static uint32_t readahead_at(struct cached_file *file, uint32_t index)
{
	const struct tree_node *next = tree_at_least(file->cache.pages, index);
	uint32_t end = pages_of(file->ops->size(file)), count;

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

/* For mm/page_cache.c: reads a page that is not there, and those after it. */
static int read_miss(struct page_cache *cache, uint32_t index, struct page **page)
{
	struct cached_file *file = (struct cached_file *)cache;
	uint32_t count = readahead_at(file, index), length = count << PAGE_SHIFT;
	void *run = run_alloc(&length);

	if (!run)
		return -ENOMEM;
	if (length < count << PAGE_SHIFT)
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

/* Page `index` with a reference, if it is there; else NULL. */
static inline struct page *hold_page(const struct cached_file *file, uint32_t index)
{
	const struct cached_page *cached = page_cache_find(&file->cache, index);

	if (!cached)
		return NULL;
	page_hold(cached->page);
	return cached->page;
}

/* Reads one that is not there; an error leaves NULL in *page. */
static int bring_page(struct cached_file *file, uint32_t index, uint32_t least, struct page **page)
{
	set_readahead(file, index, least);
	return page_cache_get(&file->cache.object, index, false, page);
}

/* Gives page `index` with a reference. */
static int get_page(struct cached_file *file, uint32_t index, uint32_t least, struct page **page)
{
	*page = hold_page(file, index);
	return *page ? 0 : bring_page(file, index, least, page);
}

/* ---- read and write ---- */

/* How many bytes there are at `offset`, of its page and of the file as it is now; at most `length`.
 */
static inline uint32_t bytes_at(const struct cached_file *file, uint64_t offset, uint32_t length)
{
	uint64_t size = file->ops->size(file);
	uint32_t in_page = PAGE_SIZE - (uint32_t)offset % PAGE_SIZE;

	if (length > in_page)
		length = in_page;
	if (offset + length <= size)
		return length;
	return offset < size ? (uint32_t)(size - offset) : 0;
}

/* The file may be cut while a page is read: then it ends there. */
int cached_file_read(struct cached_file *file, struct buffer *to, uint64_t offset)
{
	uint32_t length = to->length, done = 0, chunk;
	int moved = 0;

	while (done < length && (chunk = bytes_at(file, offset + done, length - done)) > 0) {
		uint64_t at = offset + done;
		struct page *page = hold_page(file, at >> PAGE_SHIFT);

		if (!page) {
			moved = bring_page(file, at >> PAGE_SHIFT, 1, &page);
			chunk = bytes_at(file, at, chunk);
		}
		if (page) {
			moved = buffer_put(
			    to, (uint8_t *)page_address(page) + (uint32_t)at % PAGE_SIZE, chunk);
			page_release(page);
		} else if (chunk == 0) {
			moved = 0;
		}
		done += moved > 0 ? moved : 0;
		if (moved != (int32_t)chunk)
			break;
	}
	return done ? (int32_t)done : moved;
}

/* Writes from `from`, or (NULL) from `copy`, into a page that is there, or must be read. */
static int write_old(struct cached_file *file, struct buffer *from, uint32_t index, uint32_t skip,
		     uint32_t length, const void *copy, struct cached_page **written)
{
	struct page *page;
	int moved = get_page(file, index, 1, &page);

	if (moved < 0)
		return moved;
	uint8_t *to = (uint8_t *)page_address(page) + skip;

	moved = copy ? (int)length : buffer_take(from, to, length);
	if (copy)
		memcpy(to, copy, length);
	*written = page_cache_find(&file->cache, index);
	page_release(page);
	return moved;
}

/* Writes a page that is not there, and whose old contents do not matter; what is not written is
 * zeros. If the program's memory ends half-way, those of a page before the end do matter. */
static int write_new_page(struct cached_file *file, struct buffer *from, uint32_t index,
			  uint32_t skip, uint32_t length, struct cached_page **written)
{
	bool is_old = index < pages_of(file->ops->size(file));
	uint8_t *memory = page_alloc(0);
	int moved = memory ? buffer_take(from, memory + skip, length) : -ENOMEM;

	if (moved > 0 && !page_cache_find(&file->cache, index) && (!is_old || moved == PAGE_SIZE)) {
		memset(memory, 0, skip);
		memset(memory + skip + moved, 0, PAGE_SIZE - skip - moved);
		if ((*written = page_cache_insert(&file->cache, index, page_of(memory))))
			return moved;
		moved = -ENOMEM;
	} else if (moved > 0) {
		moved = write_old(file, from, index, skip, moved, memory + skip, written);
	}
	if (memory)
		page_free(memory, 0);
	return moved;
}

/* Writes into one page. The page is dirty after the copy, which may sleep: one that is written back
 * meanwhile must be so again. */
static int write_cached_page(struct cached_file *file, struct buffer *from, uint64_t offset,
			     uint32_t length)
{
	uint32_t index = offset >> PAGE_SHIFT, skip = (uint32_t)offset % PAGE_SIZE;
	uint64_t size = file->ops->size(file);
	bool is_new = index >= pages_of(size) ||
		      (length == PAGE_SIZE && !page_cache_find(&file->cache, index));
	struct cached_page *written;
	int moved = is_new ? write_new_page(file, from, index, skip, length, &written)
			   : write_old(file, from, index, skip, length, NULL, &written);

	if (moved < 0)
		return moved;
	if (offset + moved > size)
		file->ops->grow(file, offset + moved);
	cached_file_mark_dirty(file, written, skip, moved);
	return moved;
}

/* May a page be written to? First an error of write-back is reported, once. */
static int check_write(struct cached_file *file, uint32_t index)
{
	if (file->is_failing) {
		file->is_failing = false;
		return file->errors.last;
	}
	return file->ops->will_write ? file->ops->will_write(file, index) : 0;
}

int cached_file_write(struct cached_file *file, struct buffer *from, uint64_t offset)
{
	uint32_t length = from->length, done = 0;

	while (done < length) {
		uint32_t chunk = PAGE_SIZE - (uint32_t)(offset + done) % PAGE_SIZE;
		int moved;

		if (chunk > length - done)
			chunk = length - done;
		cached_files_balance();
		moved = check_write(file, (offset + done) >> PAGE_SHIFT);
		if (!moved) {
			cached_file_count(file, 1);
			moved = write_cached_page(file, from, offset + done, chunk);
			cached_file_count(file, -1);
		}
		if (moved < 0)
			return done ? (int32_t)done : moved;
		done += moved;
		if ((uint32_t)moved < chunk)
			break;
	}
	return done;
}

/* ---- of an open file ---- */

static struct cached_file *file_of_open(struct file *open)
{
	return file_of_object(open->ops->memory(open));
}

int cached_file_open(struct file *open)
{
	open->private = (void *)(uintptr_t)errors_sample(&file_of_open(open)->errors);
	return 0;
}

int cached_file_sync_of(struct cached_file *file, struct file *open, bool data_only)
{
	uint32_t seen = (uintptr_t)open->private;

	cached_file_write_back(file, 0, UINT32_MAX);
	int error = file->ops->commit(file, data_only), told = errors_tell(&file->errors, &seen);

	open->private = (void *)(uintptr_t)seen;
	file->is_failing &= !told;
	return told ? told : error;
}

int cached_file_sync(struct file *open, bool data_only)
{
	return cached_file_sync_of(file_of_open(open), open, data_only);
}

int cached_file_advise(struct file *open, uint64_t offset, uint64_t length, uint32_t advice)
{
	enum { NORMAL, RANDOM, SEQUENTIAL, WILL_NEED, DONT_NEED };
	struct cached_file *file = file_of_open(open);
	uint32_t end = length ? pages_of(offset + length) : UINT32_MAX;
	uint32_t first = offset >> PAGE_SHIFT;
	struct page *page;

	if (advice <= SEQUENTIAL)
		file->is_random = advice == RANDOM;
	if (advice == DONT_NEED) {
		cached_file_write_back(file, first, end);
		cached_file_drop(file, pages_of(offset),
				 length ? (offset + length) >> PAGE_SHIFT : end, false);
	}
	if (advice != WILL_NEED)
		return 0;
	end = end < pages_of(file->ops->size(file)) ? end : pages_of(file->ops->size(file));
	for (; first < end && page_free_count() >= RUN_PAGES; first++) {
		if (get_page(file, first, RUN_PAGES, &page) != 0)
			break;
		page_release(page);
	}
	return 0;
}

/* ---- as mm sees it ---- */

static uint32_t file_pages(const struct page_cache *cache)
{
	const struct cached_file *file = (const struct cached_file *)cache;

	return pages_of(file->ops->size(file));
}

/* For areas: after a sleep it may be that the page is not there any more, and the file shorter. */
static int object_page(struct memory_object *object, uint32_t index, bool write, struct page **page)
{
	struct cached_file *file = file_of_object(object);
	int error = 0;

	if (write) {
		cached_files_balance();
		error = file->ops->will_write ? file->ops->will_write(file, index) : 0;
	}
	if (!error) {
		cached_file_count(file, write);
		uint32_t blocks = current->counts.blocks_in;

		error = get_page(file, index, FAULT_WINDOW, page);
		if (current->counts.blocks_in != blocks)
			page_cache_count_major();
		uint64_t rest = file->ops->size(file) - ((uint64_t)index << PAGE_SHIFT);

		if (!error && write)
			cached_file_mark_dirty(file, page_cache_find(&file->cache, index), 0,
					       rest < PAGE_SIZE ? rest : PAGE_SIZE);
		cached_file_count(file, -write);
	}
	return error == -ENOMEM || !error ? error : -EIO;
}

static void object_hold(struct memory_object *object)
{
	file_of_object(object)->ops->hold(file_of_object(object));
}

static void object_release(struct memory_object *object)
{
	file_of_object(object)->ops->release(file_of_object(object));
}

/* An area does not know its open file: it is told what happens now, and what nobody was told. */
static int object_sync(struct memory_object *object, uint32_t first, uint32_t end)
{
	struct cached_file *file = file_of_object(object);
	uint32_t seen = errors_sample(&file->errors);

	cached_file_write_back(file, first, end);
	int error = file->ops->commit(file, true), told = errors_tell(&file->errors, &seen);

	return told ? told : error;
}

void cached_file_initialize(struct cached_file *file, const struct cached_file_ops *ops)
{
	static const struct page_cache_ops cache_ops = { .read = read_miss, .count = file_pages };
	static const struct memory_object_ops object_ops = { .page = object_page,
							     .hold = object_hold,
							     .release = object_release,
							     .sync = object_sync };

	*file = (struct cached_file){ .ops = ops, .unit = PAGE_SIZE };
	page_cache_initialize(&file->cache, &cache_ops);
	file->cache.object.ops = &object_ops;
}
