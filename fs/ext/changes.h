/* Changes of metadata: several blocks become one, in the journal or without one. */
#pragma once

#include "fs/ext/mount.h"

/* A change of at most `blocks` blocks begins, and ends: journal_begin and journal_end, or nothing
 * where there is no journal. -EROFS on a mount that is read-only. Before it begins, a commit gives
 * blocks back that were freed, if few are left: after -ENOSPC there is no need to try again.
 * ext_end returns `result`, what the change has come to. */
int ext_begin(struct ext_fs *fs, uint32_t blocks);
int ext_end(struct ext_fs *fs, int result);

/* Before a cached block is changed: it becomes part of the transaction, or, without a journal,
 * dirty. After an error the second one gives the block back. */
int ext_change(struct ext_fs *fs, struct cached_block *buffer);
int ext_change_or_put(struct ext_fs *fs, struct cached_block *buffer);

/* After a change of contents. With data=journal they are committed, and go to their place. */
int ext_settle(struct ext_fs *fs);

/* Whether contents go through the journal, too. */
static inline bool ext_is_journaled(const struct ext_fs *fs)
{
	return fs->options.data == EXT_DATA_JOURNAL && fs->journal;
}

/* In the middle of a change, at a place where the disk is valid: room for `blocks` more. */
int ext_extend(struct ext_fs *fs, uint32_t blocks);

/* The room that a change of one run asks for: bitmap and descriptor for each of seven new blocks of
 * the map and for the data, these blocks, those that split, the inode, and the list of orphans. */
#define EXT_CREDITS 40u

/* Copies the superblock, with its checksum, to its block in the cache. */
void ext_super_copy(struct ext_fs *fs);

/* Blocks of metadata were freed: neither the cache nor the journal may write them any more. */
int ext_forget(struct ext_fs *fs, uint64_t first, uint32_t count);
