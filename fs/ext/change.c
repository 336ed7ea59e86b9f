/*
 * Changes: everything between ext_begin and ext_end is one change, on the disk as a whole or not at
 * all.
 *
 *	ext_begin(fs, 8)		the journal has room for eight blocks
 *	ext_change(fs, bitmap)		this block becomes part of the transaction
 *	...bits, counts, checksums
 *	ext_end(fs)			the superblock joins them if its counts have changed
 *
 * Without a journal (ext2) the blocks only become dirty, and their order on the disk is undefined.
 * The superblock that counts is fs->super; its cached block gets a copy at the end of the change.
 *
 * A mount that found contradictions (ext_corrupt) refuses to begin; what has begun goes on, so that
 * nothing is left half changed. The caller serializes all calls for one mount. They may sleep.
 */
#include "fs/ext/changes.h"
#include "fs/ext/checksums.h"
#include "fs/jbd2/journal.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"

/* Once for all that a transaction changed. */
static void seal_super(struct cached_block *buffer)
{
	struct ext_super_block *super = (struct ext_super_block *)(buffer->data + buffer->seal_at);

	super->s_checksum = ext_super_checksum(super);
}

void ext_super_copy(struct ext_fs *fs)
{
	uint32_t at = EXT_SUPER_SECTOR * SECTOR_SIZE & (fs->summary.block_size - 1);

	fs->super.s_wtime = ext_now_seconds(fs);
	memcpy(fs->super_buffer->data + at, &fs->super, sizeof(fs->super));
	fs->super_buffer->seal = ext_has_checksums(fs) ? seal_super : NULL;
	fs->super_buffer->seal_at = at;
	fs->super_changed = false;
}

/* The superblock joins the change. */
static int put_super(struct ext_fs *fs)
{
	int error = fs->super_changed ? ext_change(fs, fs->super_buffer) : 0;

	if (!error && fs->super_changed)
		ext_super_copy(fs);
	return error;
}

/* The superblock is one block more than the caller asked for. */
static uint32_t blocks_of_change(const struct ext_fs *fs, uint32_t blocks)
{
	uint32_t limit = journal_limit(fs->journal);

	return blocks + 1 < limit ? blocks + 1 : limit;
}

/* What the open transaction has freed can be allocated after a commit only: one is worth while when
 * there is little else. */
static bool is_scarce(const struct ext_fs *fs)
{
	return fs->pending_lost ||
	       (fs->pending_blocks > 0 && ext_free_blocks(fs) < fs->pending_blocks + EXT_CREDITS);
}

int ext_begin(struct ext_fs *fs, uint32_t blocks)
{
	int error = !fs->writable || (fs->failed && fs->nesting == 0) ? -EROFS : 0;

	if (!error && fs->nesting == 0 && is_scarce(fs))
		error = ext_commit(fs);
	if (!error && fs->journal)
		error = journal_begin(fs->journal, blocks_of_change(fs, blocks));
	if (!error)
		fs->nesting++;
	return error;
}

/* An error here is one of the journal, which tells it to everybody from now on. */
int ext_end(struct ext_fs *fs, int result)
{
	if (fs->nesting == 1)
		put_super(fs);
	fs->nesting--;
	if (fs->journal)
		journal_end(fs->journal);
	return result;
}

int ext_change(struct ext_fs *fs, struct cached_block *buffer)
{
	if (fs->journal)
		return journal_change(fs->journal, buffer);
	bcache_mark_dirty(buffer);
	return 0;
}

int ext_change_or_put(struct ext_fs *fs, struct cached_block *buffer)
{
	int error = ext_change(fs, buffer);

	return error ? bcache_done(buffer, error) : 0;
}

int ext_extend(struct ext_fs *fs, uint32_t blocks)
{
	int error = fs->failed ? -EROFS : put_super(fs);

	if (error || !fs->journal)
		return error;
	return journal_extend(fs->journal, blocks_of_change(fs, blocks));
}

/* Without a journal only the cache knows of them. */
int ext_forget(struct ext_fs *fs, uint64_t first, uint32_t count)
{
	if (fs->journal)
		return journal_revoke(fs->journal, first, count);
	bcache_forget(fs->device, first, count, fs->summary.block_size);
	return 0;
}

/* Without a journal: everything to its place. */
static int write_all(struct ext_fs *fs)
{
	int error = bcache_write_all(fs->device);
	int flushed = fs->options.no_barriers ? 0 : block_flush(fs->device);

	return error ? error : flushed;
}

/* The superblock may have changed outside of a change: when contradictions were found. */
int ext_commit(struct ext_fs *fs)
{
	int error = 0;

	if (!fs->writable)
		return 0;
	if (fs->super_changed && fs->journal)
		error = journal_begin(fs->journal, 1);
	if (!error && fs->super_changed) {
		error = put_super(fs);
		if (fs->journal)
			journal_end(fs->journal);
	}
	if (error)
		return error;
	return fs->journal ? journal_commit(fs->journal) : write_all(fs);
}

int ext_settle(struct ext_fs *fs)
{
	int error = ext_is_journaled(fs) ? ext_commit(fs) : 0;

	return error || !ext_is_journaled(fs) ? error : bcache_write_all(fs->device);
}
