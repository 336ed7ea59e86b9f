/*
 * How full a file system is, as statfs says it.
 *
 * `blocks` are those that files can have: without the copies of superblock and descriptors, the
 * bitmaps, the inode tables. So a fresh file system of 16 MiB in blocks of 1 KiB may have 16384
 * blocks, 15230 of them for files, 15221 free (the root directory and lost+found), and 14402
 * available to others than root.
 */
#include "fs/ext/internal.h"

/* Blocks that no file can ever have. */
static uint64_t overhead(const struct ext_fs *fs)
{
	uint64_t blocks = fs->super.s_first_data_block;

	for (uint32_t group = 0; group < fs->summary.groups; group++)
		blocks += ext_group_overhead(fs, group) + 2 + ext_table_blocks(fs);
	return blocks;
}

void ext_usage(struct ext_fs *fs, struct ext_usage *out)
{
	uint64_t reserved = ext_reserved_blocks(fs), taken = overhead(fs);

	out->blocks = fs->summary.blocks > taken ? fs->summary.blocks - taken : 0;
	out->free = ext_free_blocks(fs);
	out->available = out->free > reserved ? out->free - reserved : 0;
	out->inodes = fs->summary.inodes;
	out->free_inodes = fs->super.s_free_inodes_count;
}
