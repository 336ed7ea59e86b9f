/* Which numbers of blocks can be, and the way to one. */
#include "fs/ext/internal.h"

bool ext_range_valid(const struct ext_fs *fs, uint64_t first, uint64_t count)
{
	uint64_t blocks = fs->summary.blocks;

	return first > fs->super.s_first_data_block && first < blocks && count <= blocks - first;
}

int ext_mapping_block(const struct ext_inode *inode, uint64_t block, struct cached_block **out)
{
	struct ext_fs *fs = inode->fs;

	if (!ext_range_valid(fs, block, 1))
		return ext_corrupt_inode(inode, "mapping block %ju is outside the file system",
					 block);
	return bcache_get(fs->device, block, fs->summary.block_size, BLOCK_MAPPING, out);
}
