/*
 * Reading and writing past the cache (O_DIRECT), in runs through memory of the kernel.
 *
 * Before, dirty pages of the range are written back; a write drops the range's pages before and
 * after, so that nobody finds old contents in the cache. A page at its edge, which has more than
 * the range, may be stored to through an area meanwhile: it stays, with what was written.
 */
#include "drivers/disk/block.h"
#include "fs/cache/cached_file.h"
#include "kernel/lib/string.h"

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
		cached_file_replace(file, offset, offset + moved, run);
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
	uint32_t first = offset >> PAGE_SHIFT, end = pages_of(offset + buffer->length);

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
	if (write && moved > 0)
		current->counts.blocks_out += (uint32_t)moved / SECTOR_SIZE;
	return moved;
}
