/*
 * Mounting to write, and unmounting: what tells the next one that all is well.
 *
 *		mounted				unmounted
 *	ext2	s_state without VALID		VALID, if it was there before
 *	ext3/4	needs_recovery, empty journal	without it
 *
 * Both are written at once and past the journal: while they are set, a machine that finds the file
 * system knows that the last session did not end. s_state gets ERROR when contradictions were
 * found (corrupt.c), and only e2fsck takes it away.
 */
#include "fs/ext/internal.h"
#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"

/* Writes the superblock to its place now. */
static int put_super_now(struct ext_fs *fs)
{
	int error = ext_begin(fs, 1);

	if (error)
		return error;
	fs->super_changed = true;
	ext_end(fs);
	return ext_commit(fs);
}

/* What cannot be written, though it can be read. */
static int check_features(const struct ext_fs *fs)
{
	if (fs->summary.read_only_features)
		return -EROFS;
	if (ext_has_incompat(fs, EXT_INCOMPAT_MMP)) {
		printk("%s: unsupported feature mmp: read only\n", fs->device->name);
		return -EROFS;
	}
	if (fs->super.s_feature_compat & EXT_COMPAT_HAS_JOURNAL) {
		printk("%s: a journal: read only\n", fs->device->name);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* The next orphan: freed, or cut to its size. */
static int finish_orphan(struct ext_fs *fs, uint32_t number)
{
	struct ext_inode inode;
	int error =
	    number > fs->summary.inodes
		? ext_corrupt(fs, "list of orphans", "inode %u of %u", number, fs->summary.inodes)
		: ext_inode_load(fs, number, &inode);

	if (error)
		return error;
	return inode.links == 0 ? ext_release(&inode) : ext_orphan_cut(&inode);
}

/* Each one leaves the list, so this ends. A list that contradicts itself is dropped: e2fsck finds
 * what was in it. */
static int finish_orphans(struct ext_fs *fs)
{
	uint32_t count = 0;
	int error = 0;

	while (fs->super.s_last_orphan != 0 && !error) {
		error = ext_commit_if_needed(fs);
		if (!error)
			error = finish_orphan(fs, fs->super.s_last_orphan);
		if (!error && count++ > fs->summary.inodes)
			error = ext_corrupt(fs, "list of orphans", "a circle");
	}
	if (error == -EUCLEAN) {
		fs->super.s_last_orphan = 0;
		error = 0;
	}
	if (count > 0)
		printk("%s: %u orphans of the last session were released\n", fs->device->name,
		       count);
	return error;
}

int ext_write_begin(struct ext_fs *fs)
{
	uint64_t block = EXT_SUPER_SECTOR * SECTOR_SIZE >> fs->block_shift;
	uint32_t nanoseconds;
	int error = check_features(fs);

	if (!error)
		error = bcache_get(fs->device, block, fs->summary.block_size, BLOCK_OTHER,
				   &fs->super_buffer);
	if (error)
		return error;
	fs->seed = ext_checksum_seed(fs);
	fs->generation = (uint32_t)ext_seconds(ext_now(fs), &nanoseconds) ^ nanoseconds;
	fs->was_valid = fs->super.s_state & EXT_STATE_VALID;
	fs->writable = true;
	fs->super.s_state &= (uint16_t)~EXT_STATE_VALID;
	fs->super.s_mnt_count++;
	fs->super.s_mtime = (uint32_t)ext_seconds(ext_now(fs), &nanoseconds);
	error = put_super_now(fs);
	if (!error)
		error = finish_orphans(fs);
	if (error) {
		fs->writable = false;
		bcache_put(fs->super_buffer);
	}
	return error;
}

int ext_write_end(struct ext_fs *fs)
{
	int error, marked;

	fs->nesting = 0;
	error = ext_commit(fs);
	if (fs->was_valid)
		fs->super.s_state |= EXT_STATE_VALID;
	fs->failed = false;
	marked = put_super_now(fs);
	bcache_put(fs->super_buffer);
	ext_pending_clear(fs);
	return error ? error : marked;
}
