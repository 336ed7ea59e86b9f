/*
 * Write-back: dirty pages of cached files go to the disk, in runs.
 *
 *	pages	4 5 6 7 8 9	dirty: 4 5 6 8
 *	writes	[4 5 6] [8]	what page_cache_clean gives at a time
 *
 * Where blocks are smaller than pages only those that were written to go: the others may be holes,
 * and stay so. A page's `parts` has a bit for each sector.
 *
 * A page is clean, and read-only in every space, before it is written: what is written to it from
 * then on makes it dirty again. The contents reach the disk without any lock on the page, so
 * programs do not wait for it. Pages that are neighbours in memory, too, go as they are; others are
 * copied into a run first.
 *
 * It is done by fsync and its like; by a thread, for pages that have been dirty for OLD_NS; and by
 * a program that would make more pages dirty while a part of the memory is so already: it writes
 * back first, and so cannot be faster than the disk for long.
 *
 * A page that could not be written is clean all the same, as in Linux: otherwise a bad sector would
 * keep memory, and in the end all of it. The error is counted for fsync, and the next write fails
 * with it, so that a program without fsync ends, too.
 */
#include "drivers/disk/block.h"
#include "fs/cache/write_back.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/report/printk.h"
#include "kernel/task/sched.h"
#include "kernel/task/time.h"
#include "mm/page_alloc.h"
#include "mm/reverse_map.h"

#define OLD_NS	   5000000000ull
#define PERIOD_MS  1000
#define DIRTY_PART 8u /* of the memory that was free at first */

static struct list dirty_files = LIST_EMPTY(dirty_files);
static uint32_t dirty_pages, dirty_limit;

static unsigned run_order(uint32_t length)
{
	unsigned order = 0;

	while ((PAGE_SIZE << order) < length)
		order++;
	return order;
}

void *run_alloc(uint32_t *length)
{
	void *run = page_alloc(run_order(*length));

	if (run || *length <= PAGE_SIZE)
		return run;
	*length = PAGE_SIZE;
	return page_alloc(0);
}

void run_free(void *run, uint32_t length)
{
	page_free(run, run_order(length));
}

void cached_file_count(struct cached_file *file, int change)
{
	if (file->unwritten == 0 && change > 0) {
		file->dirty_since = time_ns();
		list_append(&dirty_files, &file->in_dirty);
	}
	file->unwritten += change;
	if (file->unwritten == 0 && change < 0)
		list_remove(&file->in_dirty);
	if (file->reserved)
		*file->reserved += (int64_t)change * file->page_blocks;
}

void cached_file_reserve(struct cached_file *file, uint64_t *reserved, uint32_t page_blocks)
{
	uint64_t pages = file->unwritten;

	*reserved += pages * page_blocks - (file->reserved ? pages * file->page_blocks : 0);
	file->reserved = reserved;
	file->page_blocks = page_blocks;
}

/* Shares data with system calls, so it cannot be pre-empted. */
static void write_back_thread(void *unused)
{
	preempt_disable();
	for (;;) {
		msleep(PERIOD_MS);
		cached_files_write_back(true);
		if (cached_files_after)
			cached_files_after();
	}
}

/* At the first dirty page: the first task of all must be the one that becomes init. */
void cached_files_start(void)
{
	static bool is_started;

	if (!is_started && !kthread_create("write-back", write_back_thread, NULL))
		printk("files: no memory for the thread that writes them back\n");
	is_started = true;
}

/* Bits for the sectors of all units that a range of a page is in; `length` is not 0. */
static uint8_t parts_of(const struct cached_file *file, uint32_t skip, uint32_t length)
{
	uint32_t first = (skip & -file->unit) / SECTOR_SIZE;
	uint32_t end = ((skip + length + file->unit - 1) & -file->unit) / SECTOR_SIZE;

	return (uint8_t)((1u << end) - (1u << first));
}

void cached_file_mark_dirty(struct cached_file *file, struct cached_page *cached, uint32_t skip,
			    uint32_t length)
{
	if (!cached || length == 0)
		return;
	uint32_t index = cached->node.key;

	cached->parts = parts_of(file, skip, length) | (cached->is_dirty ? cached->parts : 0);
	if (cached->is_dirty)
		return;
	cached->is_dirty = true;
	current->counts.blocks_out += PAGE_SIZE / SECTOR_SIZE;
	dirty_pages++;
	cached_file_count(file, 1);
	cached_files_start();
	if (file->dirty++ == 0)
		file->dirty_first = file->dirty_end = index;
	if (index < file->dirty_first)
		file->dirty_first = index;
	if (index >= file->dirty_end)
		file->dirty_end = index + 1;
}

/* One page less is dirty. */
static void count_clean(struct cached_file *file)
{
	dirty_pages--;
	file->dirty--;
	cached_file_count(file, -1);
}

/* Writes those sectors of a run that its pages' parts have, adjacent ones at once. Returns 0 or the
 * first error. */
static int write_parts(struct cached_file *file, uint64_t offset, const uint8_t *run,
		       uint32_t length, const uint8_t *parts)
{
	uint32_t at = 0;
	int error = 0;

	while (at < length) {
		uint32_t first = at;

		for (; at < length && parts[at / PAGE_SIZE] >> at % PAGE_SIZE / SECTOR_SIZE & 1;
		     at += SECTOR_SIZE)
			;
		uint32_t end = at < length ? at : length;
		int failed = end > first
				 ? file->ops->write(file, offset + first, run + first, end - first)
				 : 0;

		error = error ? error : failed;
		at += SECTOR_SIZE;
	}
	return error;
}

/* How many pages of a run are at once in memory, one after the other: as they are, or (all of
 * them) in *copy, if that is not NULL. */
static uint32_t join_pages(struct page *const *pages, uint32_t count, void **copy)
{
	uint32_t adjacent = 1;

	while (adjacent < count && pages[adjacent] == pages[0] + adjacent)
		adjacent++;
	*copy = adjacent < count ? page_alloc(run_order(count << PAGE_SHIFT)) : NULL;
	if (!*copy)
		return adjacent;
	for (uint32_t i = 0; i < count; i++)
		memcpy((uint8_t *)*copy + (i << PAGE_SHIFT), page_address(pages[i]), PAGE_SIZE);
	return count;
}

/* Writes the pages of a run, in as few parts as there is memory for. Not beyond the end. */
static int write_pages(struct cached_file *file, uint32_t index, struct page *const *pages,
		       uint32_t count, const uint8_t *parts)
{
	uint32_t done = 0;
	int error = 0;

	while (done < count) {
		uint64_t offset = (uint64_t)(index + done) << PAGE_SHIFT;
		uint64_t size = file->ops->size(file);
		void *copy;
		uint32_t joined = join_pages(pages + done, count - done, &copy);
		uint32_t length = joined << PAGE_SHIFT;

		if (offset + length > size)
			length = offset < size ? (uint32_t)(size - offset) : 0;
		int failed = write_parts(file, offset, copy ? copy : page_address(pages[done]),
					 length, parts + done);

		if (copy)
			page_free(copy, run_order(joined << PAGE_SHIFT));
		error = error ? error : failed;
		done += joined;
	}
	return error;
}

/* Writes a run that is clean already. Its pages are held: they may leave the cache meanwhile. */
static void write_run(struct cached_file *file, uint32_t index, struct cached_page *const *run,
		      uint32_t count)
{
	struct page *pages[RUN_PAGES];
	uint8_t parts[RUN_PAGES];

	cached_file_count(file, (int)count); /* clean, but without blocks yet */
	for (uint32_t i = 0; i < count; i++) {
		pages[i] = run[i]->page;
		parts[i] = run[i]->parts;
		page_hold(pages[i]);
		count_clean(file);
	}
	file->changes++;
	file->run_first = index;
	file->run_end = index + count;
	int error = write_pages(file, index, pages, count, parts);

	cached_file_count(file, -(int)count);
	file->changes++; /* its pages may be gone, and what a read has found is old now */
	file->run_end = 0;
	for (uint32_t i = 0; i < count; i++)
		page_release(pages[i]);
	if (error) {
		errors_note(&file->errors, error);
		file->is_failing = true;
	}
}

/* By page numbers: while a run is written, pages may come and go. */
static void write_runs(struct cached_file *file, uint32_t first, uint32_t end)
{
	struct cached_page *run[RUN_PAGES];
	uint32_t count;

	while ((count = page_cache_clean(&file->cache, &first, end, run, RUN_PAGES)) > 0) {
		write_run(file, first, run, count);
		first += count;
	}
}

int cached_file_write_back(struct cached_file *file, uint32_t first, uint32_t end)
{
	mutex_lock(&file->write_back);
	uint32_t errors = file->errors.count;

	first = first > file->dirty_first ? first : file->dirty_first;
	end = end < file->dirty_end ? end : file->dirty_end;
	if (file->dirty)
		write_runs(file, first, end);
	int error = file->errors.count != errors ? file->errors.last : 0;

	mutex_unlock(&file->write_back);
	return error;
}

void cached_file_drop(struct cached_file *file, uint32_t first, uint32_t end, bool all)
{
	struct tree_node *node;

	while (first < end && (node = tree_at_least(file->cache.pages, first)) && node->key < end) {
		struct cached_page *cached = (struct cached_page *)node;
		bool was_used;

		first = node->key + 1;
		if (!all &&
		    (cached->is_dirty ||
		     cached->page->references !=
			 1 + object_shown(&file->cache.object, node->key, cached->page, &was_used)))
			continue;
		if (cached->is_dirty)
			count_clean(file);
		object_forget(&file->cache.object, node->key, cached->page);
		page_cache_forget(cached);
	}
}

/* New contents for a part of a page: data is written once more, because an older write-back may be
 * on its way. Of zeros (NULL) units that are all in it need not be written; an area must ask again
 * before it writes there. */
static void replace_in_page(struct cached_file *file, uint64_t from, uint32_t length,
			    const uint8_t *data)
{
	uint32_t index = from >> PAGE_SHIFT, skip = from % PAGE_SIZE, mask = file->unit - 1;
	uint32_t first = (skip + mask) & ~mask, end = (skip + length) & ~mask;
	struct cached_page *cached = page_cache_find(&file->cache, index);

	if (!cached || !length)
		return;
	if (data) {
		memcpy((uint8_t *)page_address(cached->page) + skip, data, length);
		cached_file_mark_dirty(file, cached, skip, length);
		return;
	}
	memset((uint8_t *)page_address(cached->page) + skip, 0, length);
	if (first < end)
		cached->parts &= ~parts_of(file, first, end - first);
	if (cached->is_dirty && !cached->parts) {
		cached->is_dirty = false;
		count_clean(file);
	}
	object_clean(&file->cache.object, index, cached->page);
}

void cached_file_zero_tail(struct cached_file *file, uint64_t size)
{
	replace_in_page(file, size, -(uint32_t)size % PAGE_SIZE, NULL);
}

void cached_file_replace(struct cached_file *file, uint64_t from, uint64_t end, const void *data)
{
	const uint8_t *bytes = data;
	uint64_t first = (from + PAGE_SIZE - 1) & -(uint64_t)PAGE_SIZE;
	uint64_t last = end & -(uint64_t)PAGE_SIZE;

	file->changes++;
	if (from >= CACHED_FILE_MOST)
		return;
	if (first > last) { /* all in one page */
		replace_in_page(file, from, (uint32_t)(end - from), bytes);
		return;
	}
	replace_in_page(file, from, (uint32_t)(first - from), bytes);
	if (last < CACHED_FILE_MOST)
		replace_in_page(file, last, (uint32_t)(end - last),
				bytes ? bytes + (last - from) : NULL);
	cached_file_drop(file, first >> PAGE_SHIFT,
			 last < CACHED_FILE_MOST ? last >> PAGE_SHIFT : UINT32_MAX, true);
}

void cached_file_invalidate(struct cached_file *file, uint32_t first, uint32_t end)
{
	file->changes++;
	cached_file_drop(file, first, end, false);
}

void cached_file_cut(struct cached_file *file, uint64_t size)
{
	mutex_lock(&file->write_back);
	cached_file_replace(file, size, CACHED_FILE_MOST, NULL);
	page_cache_cut(&file->cache, pages_of(size)); /* private copies go, too */
	mutex_unlock(&file->write_back);
}

/* Writes the file that has been dirty for longest, or waits for the task that does so. */
static void write_oldest_file(void)
{
	struct cached_file *file = list_entry(dirty_files.next, struct cached_file, in_dirty);

	file->ops->hold(file);
	cached_file_write_back(file, 0, UINT32_MAX);
	if (file->unwritten) { /* some are so again: the other files come first */
		list_remove(&file->in_dirty);
		list_append(&dirty_files, &file->in_dirty);
		file->dirty_since = time_ns();
	}
	file->ops->release(file);
}

void cached_files_balance(void)
{
	if (dirty_limit == 0)
		dirty_limit = page_free_count() / DIRTY_PART;
	for (unsigned tries = 16; dirty_pages > dirty_limit && tries > 0; tries--)
		write_oldest_file();
}

/* Each file once: one that is dirty again is younger than this call. */
void cached_files_write_back(bool is_due)
{
	uint64_t now = time_ns(), age = is_due ? OLD_NS : 0;

	while (!list_is_empty(&dirty_files)) {
		struct cached_file *file =
		    list_entry(dirty_files.next, struct cached_file, in_dirty);

		if (file->dirty_since + age > now)
			break;
		write_oldest_file();
	}
}
