/*
 * How full a file system is, as statfs says it.
 *
 * `blocks` are those that files can have: without what the file system has for itself (own.c) and,
 * with block numbers from 1 on, block 0. As on Linux, what extents may need for their maps is not
 * available to anybody. 64 MiB in blocks of 4 KiB, made by mkfs.ext4 with a journal of 4 MiB:
 *
 *	16384 blocks	2059 its own	14325 for files		14319 free	13173 available
 */
#include "fs/ext/allocation.h"
#include "kernel/lib/divide.h"

#define MAPS_PART 50
#define MAPS_MOST 4096

static uint64_t own_blocks(struct ext_fs *fs)
{
	uint64_t blocks = fs->super.s_first_data_block;
	struct ext_inode journal;

	for (uint32_t i = 0; i < fs->own_count; i++)
		blocks += fs->own[i].end - fs->own[i].first;
	if (!fs->journal && fs->super.s_feature_compat & EXT_COMPAT_HAS_JOURNAL &&
	    ext_inode_read(fs, fs->super.s_journal_inum, &journal) == 0)
		blocks += journal.size >> fs->block_shift;
	return blocks;
}

void ext_usage(struct ext_fs *fs, struct ext_usage *out)
{
	uint64_t reserved = ext_reserved_blocks(fs), taken = own_blocks(fs);
	uint64_t maps = divide64(fs->summary.blocks, MAPS_PART, NULL);

	if (ext_has_incompat(fs, EXT_INCOMPAT_EXTENTS))
		reserved += maps < MAPS_MOST ? maps : MAPS_MOST;
	out->blocks = fs->summary.blocks > taken ? fs->summary.blocks - taken : 0;
	out->free = ext_free_blocks(fs);
	out->available = out->free > reserved ? out->free - reserved : 0;
	out->inodes = fs->summary.inodes;
	out->free_inodes = fs->super.s_free_inodes_count;
}
