/*
 * Reading and writing past the cache (O_DIRECT), in runs through memory of the kernel.
 *
 * Before, dirty pages of the range are written back; a write drops the range's pages before and
 * after, so that nobody finds old contents in the cache. A page at its edge, which has more than
 * the range, may be stored to through an area meanwhile: it stays, with what was written.
 */
#include "drivers/disk/block.h"
#include "fs/cache/cached_file.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/page_table.h"

/* What was written past a page becomes its contents, if it is there. It is written once more: an
 * older write-back may have been on its way. */
static void update_page(struct cached_file *file, uint64_t offset, const void *from,
			uint32_t length)
{
	uint32_t index = offset >> PAGE_SHIFT, skip = (uint32_t)offset % PAGE_SIZE;
	struct cached_page *cached = page_cache_find(&file->cache, index);

	if (!cached || length == 0)
		return;
	memcpy((uint8_t *)page_address(cached->page) + skip, from, length);
	cached_file_mark_dirty(file, cached, skip, length);
}

static void update_edges(struct cached_file *file, uint64_t offset, const uint8_t *run,
			 uint32_t length)
{
	uint32_t head = -(uint32_t)offset % PAGE_SIZE,
		 tail = (uint32_t)(offset + length) % PAGE_SIZE;

	file->changes++;
	update_page(file, offset, run, head < length ? head : length);
	if (head < length)
		update_page(file, offset + length - tail, run + length - tail, tail);
}

/* Returns how many bytes, or an error for the first. */
static int write_direct(struct cached_file *file, uint64_t offset, const void *run, uint32_t length)
{
	uint64_t size = file->ops->size(file);
	int moved = file->ops->write_direct ? file->ops->write_direct(file, offset, run, length)
					    : file->ops->write(file, offset, run, length);

	if (!moved)
		moved = length;
	if (moved > 0 && offset + moved > size)
		file->ops->grow(file, offset + moved);
	if (moved > 0)
		update_edges(file, offset, run, (uint32_t)moved);
	return moved;
}

/* Moves one run between the program and the disk. Returns how many bytes. */
static int direct_run(struct cached_file *file, struct buffer *buffer, uint64_t offset, void *run,
		      uint32_t length, bool write)
{
	uint64_t size = file->ops->size(file);
	int moved = write ? buffer_take(buffer, run, length) : 0;

	if (write) {
		moved = moved > 0 ? (int32_t)((uint32_t)moved & -SECTOR_SIZE) : moved;
		return moved > 0 ? write_direct(file, offset, run, moved) : moved;
	}
	if (offset >= size)
		return 0;
	if (length > size - offset)
		length = (uint32_t)(size - offset + SECTOR_SIZE - 1) & -SECTOR_SIZE;
	int error = file->ops->read(file, offset, run, length);

	if (error)
		return error;
	return buffer_put(buffer, run, length < size - offset ? length : (uint32_t)(size - offset));
}

/* In runs, until one moves less than it could. */
static int direct_runs(struct cached_file *file, struct buffer *buffer, uint64_t offset, bool write)
{
	uint32_t length = buffer->length, run_length = length < CACHED_RUN ? length : CACHED_RUN;
	uint32_t done = 0;
	void *run = run_alloc(&run_length);
	int moved = run ? 0 : -ENOMEM;

	run_length = run_length < length ? run_length : length;
	while (run && done < length) {
		uint32_t chunk = run_length < length - done ? run_length : length - done;

		moved = direct_run(file, buffer, offset + done, run, chunk, write);
		done += moved > 0 ? moved : 0;
		if (moved < 0 || (uint32_t)moved < chunk)
			break;
	}
	if (run)
		run_free(run, run_length);
	return done ? (int32_t)done : moved;
}

int cached_file_direct(struct cached_file *file, struct buffer *buffer, uint64_t offset, bool write)
{
	uint32_t first = offset >> PAGE_SHIFT,
		 end = (offset + buffer->length + PAGE_SIZE - 1) >> PAGE_SHIFT;

	if (buffer->length == 0 || (!write && offset >= file->ops->size(file)))
		return 0;
	if ((buffer->address | buffer->length | (uint32_t)offset) % SECTOR_SIZE)
		return -EINVAL;
	int error = file->dirty || file->run_end ? cached_file_write_back(file, first, end) : 0;

	if (error)
		return error;
	if (write)
		cached_file_drop(file, first, end, false);
	int moved = direct_runs(file, buffer, offset, write);

	if (write && moved < 0) /* some may be on the disk all the same */
		cached_file_invalidate(file, first, end);
	if (write && moved > 0) {
		current->counts.blocks_out += (uint32_t)moved / SECTOR_SIZE;
		cached_file_drop(file, (offset + PAGE_SIZE - 1) >> PAGE_SHIFT,
				 (offset + moved) >> PAGE_SHIFT, true);
	}
	return moved;
}
