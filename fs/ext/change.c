/*
 * Changes: what happens between ext_begin and ext_end is one, on the disk as a whole or not at all.
 *
 *	ext_begin(fs, 8)		the journal has room for eight blocks
 *	ext_change(fs, bitmap)		this block becomes part of the transaction
 *	...bits, counts, checksums
 *	ext_end(fs)			the superblock joins them if its counts have changed
 *
 * Without a journal (ext2) the blocks only become dirty, and their order on the disk is nobody's.
 * The superblock that counts is fs->super; its cached block gets a copy at the end of the change.
 *
 * A mount that found contradictions (ext_corrupt) refuses to begin; what has begun goes on, so that
 * nothing is left half changed. The caller serializes all calls for one mount. They may sleep.
 */
#include "fs/ext/internal.h"
#include "kernel/lib/divide.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"

#define NANOSECONDS 1000000000

/* Divides a positive number: 2^31 seconds before 1970 is the earliest time there is. */
int64_t ext_seconds(int64_t time, uint32_t *nanoseconds)
{
	const uint64_t base = (uint64_t)1 << 31;

	return (int64_t)(divide64((uint64_t)time + base * NANOSECONDS, NANOSECONDS, nanoseconds) -
			 base);
}

/* Copies the superblock to its place in the cache, with its checksum. */
static int put_super(struct ext_fs *fs)
{
	uint32_t at = EXT_SUPER_SECTOR * SECTOR_SIZE & (fs->summary.block_size - 1);
	uint32_t rest;
	int error = ext_change(fs, fs->super_buffer);

	if (error)
		return error;
	fs->super.s_wtime = (uint32_t)ext_seconds(ext_now(fs), &rest);
	if (ext_has_checksums(fs))
		fs->super.s_checksum = ext_super_checksum(&fs->super);
	memcpy(fs->super_buffer->data + at, &fs->super, sizeof(fs->super));
	fs->super_changed = false;
	return 0;
}

int ext_begin(struct ext_fs *fs, uint32_t blocks)
{
	(void)blocks;
	if (!fs->writable || fs->failed)
		return -EROFS;
	fs->nesting++;
	return 0;
}

/* An error here is one of the journal, which tells it to everybody from now on. */
void ext_end(struct ext_fs *fs)
{
	if (fs->nesting == 1 && fs->super_changed)
		put_super(fs);
	fs->nesting--;
}

int ext_change(struct ext_fs *fs, struct cached_block *buffer)
{
	fs->number += fs->number == fs->committed;
	bcache_mark_dirty(buffer);
	return 0;
}

int ext_extend(struct ext_fs *fs, uint32_t blocks)
{
	(void)blocks;
	return fs->failed ? -EROFS : 0;
}

/* Without a journal only the cache knows of them. */
int ext_forget(struct ext_fs *fs, uint64_t first, uint32_t count)
{
	bcache_forget(fs->device, first, count, fs->summary.block_size);
	return 0;
}

/* Without a journal: everything to its place. */
int ext_commit(struct ext_fs *fs)
{
	int error, flushed = 0;

	if (!fs->writable)
		return 0;
	if (fs->super_changed)
		put_super(fs);
	error = bcache_write_all(fs->device);
	if (!fs->options.no_barriers)
		flushed = block_flush(fs->device);
	if (error || flushed)
		return error ? error : flushed;
	fs->committed = fs->number;
	return 0;
}

int ext_commit_if_needed(struct ext_fs *fs)
{
	return fs->pending_lost ? ext_commit(fs) : 0;
}

bool ext_commit_for_space(struct ext_fs *fs)
{
	return fs->pending_count > 0 && ext_commit(fs) == 0;
}

uint32_t ext_open_number(const struct ext_fs *fs)
{
	return fs->number;
}

uint32_t ext_committed_number(const struct ext_fs *fs)
{
	return fs->committed;
}
