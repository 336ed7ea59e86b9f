/*
 * Writing contents: a piece at a time, each as long as one answer of the map.
 *
 *	mapped			overwrite: whole sectors straight, part of a sector is read first
 *	unwritten		write the blocks, then convert the extent
 *	hole			allocate a run, write the blocks, then map them
 *
 * A new block is written whole, with zeros around what the caller gives. 6000 bytes from 5000 on
 * into a hole, in blocks of 4096, that allocation puts at 700:
 *
 *	block 700	904 zeros, bytes 5000 to 8191
 *	block 701	bytes 8192 to 10999, 1288 zeros
 *
 * Data is on its way to the disk before the map says where it is, and the commit flushes before its
 * own block: so after a power cut no file shows what was in its blocks before (ordered mode). A
 * failure in the middle of a piece frees what it has allocated.
 *
 * What is beyond the end of the file in its last block is zeros, whatever wrote it: a file that
 * grows shows it.
 *
 * With data=journal the contents are part of the transaction, JOURNALED_MAX blocks at a time. It is
 * committed, and everything written to its place, before the call returns: so a reader that goes
 * past the cache reads what was written.
 */
#include "fs/ext/allocation.h"
#include "fs/ext/mapping.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

#define JOURNALED_MAX 16      /* blocks of contents in one transaction */
#define TICK	      4000000 /* ns: times that differ by less are not written for their own sake */

/* Data, or (NULL) zeros. */
static void fill_part(uint8_t *to, const uint8_t *data, uint32_t length)
{
	if (data)
		memcpy(to, data, length);
	else
		memset(to, 0, length);
}

/* Changes a part of one sector, read first: a drive writes whole sectors only. */
static int write_part(struct block_device *device, uint64_t lba, uint32_t skip, const uint8_t *data,
		      uint32_t length)
{
	uint8_t sector[SECTOR_SIZE];
	int error = block_read(device, lba, 1, sector, BLOCK_DATA);

	if (error)
		return error;
	fill_part(sector + skip, data, length);
	return block_write(device, lba, 1, sector, BLOCK_DATA);
}

/* Changes contents in the cache, as metadata: in one block; *length becomes what of it that was. */
static int write_cached(struct ext_fs *fs, uint64_t position, const uint8_t *data, uint32_t *length)
{
	uint32_t skip = position & (fs->summary.block_size - 1);
	struct cached_block *buffer;
	int error = bcache_get(fs->device, position >> fs->block_shift, fs->summary.block_size,
			       BLOCK_DATA, &buffer);

	if (error)
		return error;
	*length = ext_shorter(*length, fs->summary.block_size - skip);
	error = ext_change(fs, buffer);
	if (!error)
		fill_part(buffer->data + skip, data, *length);
	return bcache_done(buffer, error);
}

/* Changes contents on the disk: whole sectors, or a part of one, which is read first. */
static int write_sectors(struct ext_fs *fs, uint64_t position, const uint8_t *data,
			 uint32_t *length)
{
	uint64_t lba = position / SECTOR_SIZE;
	uint32_t skip = position % SECTOR_SIZE, count = *length / SECTOR_SIZE;

	if (skip == 0 && count > 0 && data) {
		*length = count * SECTOR_SIZE;
		return block_write(fs->device, lba, count, data, BLOCK_DATA);
	}
	*length = ext_shorter(*length, SECTOR_SIZE - skip);
	return write_part(fs->device, lba, skip, data, *length);
}

/* Writes from a byte position of the device, in as many requests as it takes. NULL: zeros. */
static int write_device(struct ext_fs *fs, uint64_t position, const uint8_t *data, uint32_t length)
{
	int error = 0;

	for (uint32_t part = length; length > 0 && !error; part = length) {
		error = ext_is_journaled(fs) ? write_cached(fs, position, data, &part)
					     : write_sectors(fs, position, data, &part);
		position += part;
		length -= part;
		data = data ? data + part : NULL;
	}
	return error;
}

/* A hole, or an unwritten block, reads as zeros already. */
int ext_zero_tail(struct ext_inode *inode, uint64_t size)
{
	struct ext_fs *fs = inode->fs;
	uint32_t skip = size & (fs->summary.block_size - 1);
	struct ext_mapping mapping;

	if (skip == 0)
		return 0;
	int error = ext_map_all(inode, size >> fs->block_shift, &mapping);

	if (error || mapping.physical == 0 || mapping.unwritten)
		return error;
	return write_device(fs, (mapping.physical << fs->block_shift) + skip, NULL,
			    fs->summary.block_size - skip);
}

/* Writes one new block, of which the caller has a part; page is a block's memory. What was on the
 * disk there is another file's, so nothing of it stays. */
static int write_padded(struct ext_fs *fs, uint64_t physical, uint32_t skip, const uint8_t *data,
			uint32_t length, uint8_t *page)
{
	uint32_t size = fs->summary.block_size;

	memset(page, 0, size);
	if (length > 0)
		memcpy(page + skip, data, length);
	return write_device(fs, physical << fs->block_shift, page, size);
}

/* Writes new blocks from `physical` on: length bytes after `skip`, and zeros around. The map says
 * where they are only after that. */
static int write_new(struct ext_fs *fs, uint64_t physical, uint32_t skip, const uint8_t *data,
		     uint32_t length)
{
	uint32_t size = fs->summary.block_size;
	uint8_t *page = page_alloc(0);
	int error = page ? 0 : -ENOMEM;

	while (length > 0 && !error) {
		uint32_t part = size - skip < length ? size - skip : length;

		if (part == size) {
			part = length - (length & (size - 1));
			error = write_device(fs, physical << fs->block_shift, data, part);
		} else {
			error = write_padded(fs, physical, skip, data, part, page);
		}
		physical += (skip + part) >> fs->block_shift;
		data += part;
		length -= part;
		skip = 0;
	}
	if (page)
		page_free(page, 0);
	return error;
}

/* A page of zeros, once for each block. -ENOMEM, or the drive's error. */
int ext_zero_blocks(struct ext_fs *fs, uint64_t physical, uint32_t count)
{
	uint8_t *page = page_alloc(0);
	int error = page ? 0 : -ENOMEM;

	for (; count > 0 && !error; physical++, count--)
		error = write_padded(fs, physical, 0, NULL, 0, page);
	if (page)
		page_free(page, 0);
	return error;
}

/* How many blocks of contents one transaction may have: any number, if they are not in it. */
static uint32_t most_blocks(const struct ext_fs *fs)
{
	return ext_is_journaled(fs) ? JOURNALED_MAX : UINT32_MAX;
}

/* As long as the caller wants, the answer of the map, and one change of it allow; and what is
 * allocated may be shorter still. -EFBIG, -ENOSPC. */
int ext_run_allocate(struct ext_inode *inode, const struct ext_mapping *mapping, uint64_t count,
		     struct ext_run *run)
{
	uint32_t reach = ext_map_reach(inode, run->logical);
	uint64_t goal;

	if (reach == 0)
		return -EFBIG;
	count = ext_shorter(ext_shorter(count, mapping->length), reach);
	run->length = ext_shorter(count, most_blocks(inode->fs));
	run->physical = mapping->physical;
	if (mapping->physical != 0)
		return 0;
	int error = ext_map_goal(inode, run->logical, &goal);

	if (error)
		return error;
	int got = ext_blocks_allocate(inode, goal, run->length, &run->physical);

	if (got > 0)
		run->length = (uint32_t)got;
	return got < 0 ? got : 0;
}

/* Writes into a hole or unwritten blocks. Returns the bytes written, or an error. */
static int64_t write_fresh(struct ext_inode *inode, const struct ext_mapping *mapping,
			   uint64_t offset, const uint8_t *data, uint32_t length)
{
	struct ext_fs *fs = inode->fs;
	uint32_t skip = offset & (fs->summary.block_size - 1);
	uint64_t count = ((uint64_t)skip + length + fs->summary.block_size - 1) >> fs->block_shift;
	struct ext_run run = { .logical = offset >> fs->block_shift };
	int error = ext_run_allocate(inode, mapping, count, &run);

	if (error)
		return error;
	if (((uint64_t)run.length << fs->block_shift) - skip < length)
		length = (uint32_t)(((uint64_t)run.length << fs->block_shift) - skip);
	error = write_new(fs, run.physical, skip, data, length) ?: ext_map_set(inode, &run);
	if (error && mapping->physical == 0)
		ext_blocks_free(inode, run.physical, run.length, false);
	return error ? error : (int64_t)length;
}

/* Writes what one answer of the map covers. Blocks that are the file system's own are not written,
 * even if a damaged map names them. */
static int64_t write_some(struct ext_inode *inode, uint64_t offset, const uint8_t *data,
			  uint32_t length)
{
	struct ext_fs *fs = inode->fs;
	uint32_t skip = offset & (fs->summary.block_size - 1);
	struct ext_mapping mapping;
	int error = ext_map_all(inode, offset >> fs->block_shift, &mapping);

	if (error)
		return error;
	if (mapping.physical == 0 || mapping.unwritten)
		return write_fresh(inode, &mapping, offset, data, length);
	mapping.length = ext_shorter(mapping.length, most_blocks(fs));
	mapping.length = ext_shorter(mapping.length, ext_blocks_to_group_end(fs, mapping.physical));
	if (mapping.length <= ((uint64_t)skip + length) >> fs->block_shift)
		length = (uint32_t)(mapping.length << fs->block_shift) - skip;
	error = ext_check_run(inode, mapping.physical,
			      (skip + length + fs->summary.block_size - 1) >> fs->block_shift);
	if (error)
		return error;
	error = write_device(fs, (mapping.physical << fs->block_shift) + skip, data, length);
	return error ? error : (int64_t)length;
}

/* One change: a piece of the contents, and what the inode says about it. The inode is written only
 * if something of it is new: times count in ticks. */
static int64_t write_piece(struct ext_inode *inode, uint64_t offset, const uint8_t *data,
			   uint32_t length)
{
	struct ext_inode before = *inode;
	int64_t now = ext_inode_now(inode);
	int error = ext_inode_begin(inode);

	if (error)
		return error;
	int64_t written = write_some(inode, offset, data, length);

	if (written > 0 && offset + (uint64_t)written > inode->size)
		inode->size = offset + (uint64_t)written;
	error = written < 0 ? (int)written : 0;
	if (inode->blocks != before.blocks || inode->size != before.size ||
	    memcmp(inode->map, before.map, sizeof(before.map)) != 0 ||
	    now - inode->modified >= TICK || now < inode->modified) {
		inode->modified = inode->changed = now;
		error = ext_inode_write_after(inode, error);
	}
	error = ext_inode_end(inode, error);
	return error ? error : written;
}

/* A change of its own: after a power cut the file is as long as before, with zeros after its end.
 */
int ext_zero_gap(struct ext_inode *inode)
{
	int error = ext_begin(inode->fs, EXT_CREDITS);

	if (error)
		return error;
	error = ext_end(inode->fs, ext_zero_tail(inode, inode->size));
	return error ? error : ext_settle(inode->fs);
}

/* When the disk is full, half as much leaves some blocks for the map: so each -ENOSPC halves what
 * is tried. */
int ext_write(struct ext_inode *inode, uint64_t offset, const void *data, uint32_t length)
{
	uint64_t limit = ext_size_limit(inode);
	uint32_t done = 0, most = length;

	if (!ext_is_regular(inode) || length > INT32_MAX)
		return -EINVAL;
	if (offset >= limit && length > 0)
		return -EFBIG;
	length = ext_shorter(length, limit - offset);
	if (!inode->fs->writable || inode->fs->failed)
		return -EROFS;
	int error = offset > inode->size ? ext_zero_gap(inode) : 0;

	while (done < length && !error) {
		uint32_t rest = length - done < most ? length - done : most;
		int64_t part =
		    write_piece(inode, offset + done, (const uint8_t *)data + done, rest);

		if (part > 0) {
			done += (uint32_t)part;
		} else if (part == -ENOSPC && rest > 1) {
			most = rest / 2;
		} else {
			error = (int)part;
		}
	}
	return done > 0 ? (int)done : error;
}
