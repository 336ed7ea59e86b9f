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
 */
#include "fs/cache/cached_file.h"

#include "drivers/disk/block.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

#define FAULT_WINDOW 8u /* for areas: a program's code is not read sequentially, but nearby */

static struct cached_file *file_of_object(const struct memory_object *object)
{
	return (struct cached_file *)(uintptr_t)object;
}

/* Page `index` with a reference. If it must be read, `least` pages from there on are, too, or more
 * (fs/cache/readahead.c). An error leaves *page as it was. */
static int get_page(struct cached_file *file, uint32_t index, uint32_t least, struct page **page)
{
	file->least = least;
	return page_cache_get(&file->cache.object, index, false, page);
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
		const struct cached_page *cached = page_cache_find(&file->cache, at >> PAGE_SHIFT);
		struct page *page = cached ? cached->page : NULL;

		if (page) {
			page_hold(page);
		} else {
			moved = get_page(file, at >> PAGE_SHIFT, 1, &page);
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

/* Writes into a page that is there, or must be read. */
static int write_old(struct cached_file *file, struct buffer *from, uint32_t index, uint32_t skip,
		     uint32_t length, struct cached_page **written)
{
	struct page *page;
	int moved = get_page(file, index, 1, &page);

	if (moved < 0)
		return moved;
	moved = buffer_take(from, (uint8_t *)page_address(page) + skip, length);
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
		struct buffer copied = buffer_of_kernel(memory + skip, moved);

		moved = write_old(file, &copied, index, skip, moved, written);
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
			   : write_old(file, from, index, skip, length, &written);

	if (moved < 0)
		return moved;
	if (offset + moved > size)
		file->ops->grow(file, offset + moved);
	cached_file_mark_dirty(file, written, skip, moved);
	return moved;
}

/* A part of a page is about to become dirty, by a program or by an area: while too many pages are,
 * some are written back first. A program is told an error of write-back, once. The page's blocks
 * are reserved from now on; after 0 the caller ends that with cached_file_count(file, -1). */
static int begin_write(struct cached_file *file, uint64_t offset, uint32_t length, bool is_area)
{
	cached_files_balance();
	if (file->is_failing && !is_area) {
		file->is_failing = false;
		return file->errors.last;
	}
	int error = file->ops->will_write ? file->ops->will_write(file, offset, length) : 0;

	if (!error)
		cached_file_count(file, 1);
	return error;
}

int cached_file_write(struct cached_file *file, struct buffer *from, uint64_t offset)
{
	uint32_t length = from->length, done = 0;

	while (done < length) {
		uint32_t chunk = PAGE_SIZE - (uint32_t)(offset + done) % PAGE_SIZE;

		if (chunk > length - done)
			chunk = length - done;
		int moved = begin_write(file, offset + done, chunk, false);

		if (!moved) {
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

/* Tells what happens now, and an error of write-back that came after the first *seen. */
static int sync_pages(struct cached_file *file, uint32_t first, uint32_t end, bool data_only,
		      uint32_t *seen)
{
	cached_file_write_back(file, first, end);
	int error = file->ops->commit(file, data_only), told = errors_tell(&file->errors, seen);

	return told ? told : error;
}

int cached_file_sync_of(struct cached_file *file, struct file *open, bool data_only)
{
	uint32_t seen = (uintptr_t)open->private;
	int error = sync_pages(file, 0, UINT32_MAX, data_only, &seen);

	file->is_failing &= seen == (uintptr_t)open->private;
	open->private = (void *)(uintptr_t)seen;
	return error;
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
	uint64_t offset = (uint64_t)index << PAGE_SHIFT;
	int error = write ? begin_write(file, offset, PAGE_SIZE, true) : 0;

	if (!error) {
		uint32_t blocks = current->counts.blocks_in;

		error = get_page(file, index, FAULT_WINDOW, page);
		if (current->counts.blocks_in != blocks)
			page_cache_count_major();
		uint64_t rest = file->ops->size(file) - offset;

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

	return sync_pages(file, first, end, true, &seen);
}

void cached_file_initialize(struct cached_file *file, const struct cached_file_ops *ops)
{
	static const struct page_cache_ops cache_ops = { .read = cached_file_read_miss,
							 .count = file_pages };
	static const struct memory_object_ops object_ops = { .page = object_page,
							     .hold = object_hold,
							     .release = object_release,
							     .sync = object_sync };

	*file = (struct cached_file){ .ops = ops, .unit = PAGE_SIZE };
	page_cache_initialize(&file->cache, &cache_ops);
	file->cache.object.ops = &object_ops;
}
