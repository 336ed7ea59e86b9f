/*
 * Mounting to write, and unmounting: the marks that tell the next mount whether all is well.
 *
 *		mounted				unmounted
 *	ext2	s_state without VALID		VALID, if it was there before
 *	ext3/4	needs_recovery, empty journal	without it
 *
 * Both are written at once and past the journal: while they are set, a machine that finds the file
 * system knows that the last session did not end. s_state gets ERROR when contradictions were
 * found (corrupt.c), and only e2fsck takes it away.
 *
 *	ext_journal_begin	opens the journal, and replays it; also for a mount that only reads
 *	ext_write_begin		checks, sets the marks, and finishes what a power cut has left
 *	ext_write_end		commits, and takes the marks away
 *
 * Called by fs/ext/super.c. May wait for the drive.
 */
#include "fs/ext/allocation.h"
#include "fs/ext/mapping.h"
#include "fs/jbd2/journal.h"
#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"

/* Writes the superblock to its place now. No transaction has it. */
static int put_super_now(struct ext_fs *fs)
{
	ext_super_copy(fs);
	bcache_mark_dirty(fs->super_buffer);
	int error = bcache_write(fs->super_buffer);

	return error || fs->options.no_barriers ? error : block_flush(fs->device);
}

/* Its block stays referenced as long as the file system is written to. */
static int get_super(struct ext_fs *fs)
{
	uint64_t block = EXT_SUPER_SECTOR * SECTOR_SIZE >> fs->block_shift;

	return bcache_get(fs->device, block, fs->summary.block_size, BLOCK_OTHER,
			  &fs->super_buffer);
}

/* ---- the journal ---- */

/* struct journal_place's map, with an inode as its context. */
static int map_journal(void *inode, uint32_t logical, uint64_t *physical)
{
	return ext_block_place(inode, logical, physical);
}

/* The journal is a file without a name. -EOPNOTSUPP for one on another device; -EUCLEAN for an
 * inode that cannot be it. */
static int open_journal(struct ext_fs *fs)
{
	struct ext_inode inode;
	struct journal_place place = {
		.device = fs->device,
		.block_size = fs->summary.block_size,
		.map = map_journal,
		.context = &inode,
		.now = fs->options.now,
		.no_barriers = fs->options.no_barriers,
		.wide = ext_has_incompat(fs, EXT_INCOMPAT_64BIT),
		.checksums = ext_has_checksums(fs),
	};

	if (fs->super.s_journal_dev != 0) {
		printk("%s: the journal is on another device\n", fs->device->name);
		return -EOPNOTSUPP;
	}
	int error = ext_inode_read(fs, fs->super.s_journal_inum, &inode);

	if (error)
		return error == -EINVAL ? ext_corrupt(fs, "superblock", "journal in inode %u",
						      fs->super.s_journal_inum)
					: error;
	if (!ext_is_regular(&inode) || inode.size >> fs->block_shift > UINT32_MAX)
		return ext_corrupt_inode(&inode, "the journal has mode 0%o, size %ju", inode.mode,
					 inode.size);
	place.blocks = (uint32_t)(inode.size >> fs->block_shift);
	return journal_open(&place, &fs->journal);
}

/* After it the superblock no longer asks for it. What was read before may be older than the disk:
 * the caller checks all of it again. */
static int replay(struct ext_fs *fs)
{
	uint32_t blocks;
	int error = journal_recover(fs->journal, &blocks);

	if (error)
		return error;
	printk("%s: %u blocks were replayed from the journal\n", fs->device->name, blocks);
	return 0;
}

/* A journal that need not be replayed is not even opened by a mount that only reads. */
int ext_journal_begin(struct ext_fs *fs, bool *replayed)
{
	bool recover = ext_has_incompat(fs, EXT_INCOMPAT_RECOVER);

	*replayed = false;
	if (!(fs->super.s_feature_compat & EXT_COMPAT_HAS_JOURNAL))
		return recover ? ext_corrupt(fs, "needs_recovery", "but there is no journal") : 0;
	if (fs->options.read_only && (!recover || fs->options.no_replay))
		return 0;
	int error = open_journal(fs) ?: ext_own_add_journal(fs);

	if (!error && journal_needs_recovery(fs->journal)) {
		error = replay(fs);
		*replayed = !error;
	}
	return error;
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
	return 0;
}

/* The superblock's counts are those of the last unmount: after a power cut they may be anything. As
 * on Linux those of the descriptors count. */
static int check_groups(struct ext_fs *fs)
{
	uint64_t blocks;
	int error = ext_groups_check(fs, &blocks, &fs->super.s_free_inodes_count);

	if (!error)
		ext_count_free(fs, blocks);
	return error;
}

/* The next orphan: freed, or cut to its size. */
static int finish_orphan(struct ext_fs *fs, uint32_t number)
{
	struct ext_inode inode;
	/* a change: a bitmap that was never written is made */
	int error = ext_orphan_check(fs, number) ?: ext_begin(fs, EXT_CREDITS)
			?: ext_end(fs, ext_inode_check_used(fs, number))
			?: ext_inode_load(fs, number, &inode);

	if (error)
		return error;
	if (inode.links > 0 && !ext_is_regular(&inode))
		return ext_corrupt_inode(&inode, "is in the list of orphans, and has %u links",
					 inode.links);
	return inode.links == 0 ? ext_release(&inode) : ext_orphan_cut(&inode);
}

/* Each one leaves the list, so this ends. A list that contradicts itself is dropped: e2fsck finds
 * what was in it. */
static int finish_orphans(struct ext_fs *fs)
{
	uint32_t count = 0;
	int error = ext_orphan_file_empty(fs);

	while (fs->super.s_last_orphan != 0 && !error) {
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

/* A mount that only reads has replayed the journal, and closes it again. */
int ext_journal_leave(struct ext_fs *fs)
{
	int error = journal_close(fs->journal);

	fs->journal = NULL;
	if (!error)
		error = get_super(fs);
	if (error)
		return error;
	fs->super.s_feature_incompat &= ~EXT_INCOMPAT_RECOVER;
	return bcache_done(fs->super_buffer, put_super_now(fs));
}

/* Blocks that were freed may be used again: no crash can bring back who had them. */
static void committed(void *fs)
{
	ext_pending_clear(fs);
}

/* What the superblock says while the file system is mounted. */
static int mark_used(struct ext_fs *fs)
{
	uint32_t nanoseconds;

	fs->was_valid = fs->super.s_state & EXT_STATE_VALID;
	if (fs->journal)
		fs->super.s_feature_incompat |= EXT_INCOMPAT_RECOVER;
	else
		fs->super.s_state &= (uint16_t)~EXT_STATE_VALID;
	fs->super.s_mnt_count++;
	fs->super.s_mtime = (uint32_t)ext_seconds(ext_now(fs), &nanoseconds);
	fs->generation = fs->super.s_mtime ^ nanoseconds;
	return put_super_now(fs);
}

/* The orphans come last, because releasing them is the first change. */
int ext_write_begin(struct ext_fs *fs)
{
	int error = check_features(fs) ?: check_groups(fs) ?: get_super(fs);

	if (error)
		return error;
	if (fs->journal)
		journal_on_commit(fs->journal, committed, fs);
	error = mark_used(fs);
	fs->writable = !error;
	if (!error)
		error = finish_orphans(fs);
	if (error) {
		fs->writable = false;
		bcache_put(fs->super_buffer);
	}
	return error;
}

/* After an error the superblock still says that the last session did not end. */
int ext_write_end(struct ext_fs *fs)
{
	int closed = 0, error = ext_commit(fs);

	if (fs->journal)
		closed = journal_close(fs->journal);
	error = error ? error : closed;
	fs->journal = NULL;
	ext_pending_clear(fs);
	if (!error) {
		fs->super.s_feature_incompat &= ~EXT_INCOMPAT_RECOVER;
		if (fs->was_valid)
			fs->super.s_state |= EXT_STATE_VALID;
		error = put_super_now(fs);
	}
	bcache_put(fs->super_buffer);
	if (fs->options.data == EXT_DATA_JOURNAL)
		bcache_drop(); /* contents, which the next mount may write past the cache */
	return error;
}
