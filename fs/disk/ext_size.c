/*
 * Sizes and blocks of files of ext2, ext3 and ext4: truncate, fallocate, holes.
 *
 * To make a file shorter: first its size, then its pages go, and then its blocks are freed. A fault
 * or a read that comes in between finds the end of the file.
 */
#include "fs/disk/ext_inode.h"
#include "fs/ext/disk.h"
#include "fs/vfs/vfs.h"

/* FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE: which other modes there are fallocate(2) says, and
 * they are -EOPNOTSUPP. */
#define KEEP_SIZE  1u /* of fallocate */
#define PUNCH_HOLE 2u

/* What the map cannot tell is missing: then too much is reserved, not too little. */
uint64_t disk_missing(struct disk_inode *inode, uint64_t block, uint64_t end, bool is_written)
{
	struct ext_mapping mapping;
	uint64_t count = 0;

	for (; block < end; block += mapping.length) {
		if (ext_map_all(&inode->ext, block, &mapping) != 0)
			return count + end - block;
		if (mapping.length > end - block)
			mapping.length = end - block;
		if (!mapping.physical || (is_written && mapping.unwritten))
			count += mapping.length;
	}
	return count;
}

/* Dirty pages get their blocks first. After an error the answer is no: the caller goes on, and
 * meets it. */
bool disk_is_hole(struct disk_inode *inode, uint64_t offset)
{
	uint64_t page = offset >> PAGE_SHIFT, block = offset >> inode->mount->block_shift;
	struct ext_mapping mapping;

	return !cached_file_write_back(&inode->pages, page, page + 1) &&
	       !disk_map(inode, block, &mapping) && mapping.physical == 0;
}

/* ---- sizes ---- */

/* With the file's lock. Shorter: the pages go before the blocks, so that none is written to a block
 * that is free. Longer: what was beyond the end reads as zeros. */
static int set_size(struct disk_inode *inode, uint64_t size)
{
	if (size <= inode->inode.size) {
		inode->inode.size = size;
		cached_file_cut(&inode->pages, size);
	} else {
		cached_file_zero_tail(&inode->pages, inode->inode.size);
	}
	mutex_lock(&inode->mount->lock);
	int error = disk_inode_unlock(inode, ext_truncate(&inode->ext, size));

	if (!error || inode->ext.size > inode->inode.size)
		inode->inode.size = inode->ext.size; /* not cut: what is on the disk is there */
	return error;
}

/* The file's lock keeps writers out; the mount's is taken for the change itself. */
int disk_truncate(struct inode *truncated, uint64_t size)
{
	struct disk_inode *inode = disk_inode(truncated);

	mutex_lock(&inode->lock);
	int error = inode->mount->read_only ? -EROFS : set_size(inode, size);

	mutex_unlock(&inode->lock);
	if (!error)
		inode_touch(truncated, true);
	return disk_finish(inode, error);
}

/* ---- fallocate ---- */

/* Zeros for the part of a block, through the cache; a hole stays one. With the file's lock. */
static int zero_in_block(struct disk_inode *inode, uint64_t from, uint64_t end)
{
	static const uint8_t zeros[PAGE_SIZE];

	if (end > inode->inode.size)
		end = inode->inode.size;
	if (from >= end || disk_is_hole(inode, from))
		return 0;
	struct buffer buffer = buffer_of_kernel((void *)(uintptr_t)zeros, (uint32_t)(end - from));
	int moved = cached_file_write(&inode->pages, &buffer, from);

	return moved < 0 ? moved : 0;
}

/* With the file's write_back, so that what is in memory of the range is not written after it. Room
 * is made before that, which may need to write this file. */
static int punch_blocks(struct disk_inode *inode, uint64_t first, uint64_t last)
{
	uint32_t shift = inode->mount->block_shift;

	mutex_lock(&inode->mount->lock);
	disk_need_blocks(inode->mount, DISK_NAME_BLOCKS);
	mutex_unlock(&inode->mount->lock);
	mutex_lock(&inode->pages.write_back);
	mutex_lock(&inode->mount->lock);
	int error = ext_punch(&inode->ext, first >> shift, (last - first) >> shift);

	error = disk_inode_unlock(inode, error);
	if (!error)
		cached_file_replace(&inode->pages, first, last, NULL);
	else /* some blocks may be freed */
		cached_file_invalidate(&inode->pages, 0, UINT32_MAX);
	mutex_unlock(&inode->pages.write_back);
	return error;
}

/* Whole blocks are freed, and so is the file's last one if its rest goes; parts at both ends become
 * zeros. */
static int punch_range(struct disk_inode *inode, uint64_t offset, uint64_t length)
{
	uint32_t shift = inode->mount->block_shift, mask = (1u << shift) - 1;
	uint64_t end = offset + length, first = (offset + mask) & ~(uint64_t)mask;
	uint64_t last = (end + (end < inode->inode.size ? 0 : mask)) & ~(uint64_t)mask;
	int error = zero_in_block(inode, offset, first < end ? first : end);

	if (!error && first <= last)
		error = zero_in_block(inode, last, end);
	if (!error && inode->ext.size < inode->inode.size) /* only write-back stores a new size */
		error = cached_file_write_back(&inode->pages, 0, UINT32_MAX);
	if (error || first >= last)
		return error;
	return punch_blocks(inode, first, last);
}

/* Dirty pages have their blocks first, so that those are no longer holes. -EFBIG beyond
 * RLIMIT_FSIZE, -ENOSPC. The size, if it changes, is the last that does. */
static int reserve_blocks(struct disk_inode *inode, uint64_t offset, uint64_t length,
			  bool keep_size)
{
	uint32_t shift = inode->mount->block_shift;
	uint64_t end = offset + length, first = offset >> shift;
	uint64_t count = ((end + (1u << shift) - 1) >> shift) - first;

	if (!keep_size && end > inode->inode.size && vfs_room && vfs_room(end - 1) == 0)
		return -EFBIG;
	int error = cached_file_write_back(&inode->pages, 0, UINT32_MAX);

	mutex_lock(&inode->mount->lock);
	disk_need_blocks(inode->mount, count + DISK_NAME_BLOCKS);
	if (!error)
		error = ext_allocate(&inode->ext, first, count, true);
	error = disk_inode_unlock(inode, error);
	if (!error && !keep_size && end > inode->inode.size)
		error = set_size(inode, end);
	return error;
}

/* fallocate(2). Space cannot be reserved where pointers cannot say that a block has no contents;
 * holes can be made in both formats. */
int disk_allocate(struct inode *vfs, uint32_t mode, uint64_t offset, uint64_t length)
{
	struct disk_inode *inode = disk_inode(vfs);
	int error = -EOPNOTSUPP;

	mutex_lock(&inode->lock);
	if (mode == (PUNCH_HOLE | KEEP_SIZE))
		error = punch_range(inode, offset, length);
	else if (!(mode & ~KEEP_SIZE) && inode->ext.flags & EXT_FLAG_EXTENTS)
		error = reserve_blocks(inode, offset, length, mode);
	mutex_unlock(&inode->lock);
	if (!error)
		inode_touch(&inode->inode, true);
	return disk_finish(inode, error);
}
