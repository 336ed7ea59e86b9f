/*
 * Checks numbers of blocks, and gets blocks of the map.
 *
 * Block numbers come from the disk, so every one is checked before it is used. A superblock's first
 * data block is the lowest number that exists, and is the superblock's own: a valid range begins
 * after it.
 */
#include "fs/ext/mapping.h"
#include "kernel/lib/errno.h"

/* Subtracts, because first + count may wrap. Block 0 and the superblock's belong to no file. */
bool ext_range_valid(const struct ext_fs *fs, uint64_t first, uint64_t count)
{
	uint64_t blocks = fs->summary.blocks;

	return first > fs->super.s_first_data_block && first < blocks && count <= blocks - first;
}

/* As on Linux the mount behaves as its `errors` says. */
int ext_block_read(const struct ext_fs *fs, uint64_t block, enum block_purpose purpose,
		   struct cached_block **out)
{
	int error = bcache_get(fs->device, block, fs->summary.block_size, purpose, out);

	return error == -EIO ? ext_unreadable(fs, block) : error;
}

/* Through the cache: a file's pointer blocks are needed again and again, its data once. */
int ext_mapping_block(const struct ext_inode *inode, uint64_t block, struct cached_block **out)
{
	const struct ext_fs *fs = inode->fs;

	if (!ext_range_valid(fs, block, 1))
		return ext_corrupt_inode(inode, "mapping block %ju is outside the file system",
					 block);
	return ext_block_read(fs, block, BLOCK_MAPPING, out);
}
