/*
 * The journal of a file system, in the format of Linux's jbd2: changes of several blocks become
 * one, which is on the disk whole or not at all.
 *
 *	journal_begin(journal, 8)	room for eight changed blocks
 *	journal_change(journal, block)	before each change of a cached block
 *	...the caller changes block->data
 *	journal_end(journal)
 *
 * What was changed between begin and end is never split over two transactions. One transaction is
 * open at a time. It collects the changes of many calls, until somebody wants it on the disk
 * (journal_commit), or it is full.
 *
 * Callers serialize all calls for one journal (the mount's lock). All of them may sleep. After an
 * error of the device while committing, the journal is aborted: it writes nothing any more, and
 * every call gives -EROFS.
 *
 * Format: docs.kernel.org, "ext4 Data Structures and Algorithms", 3.6 Journal (jbd2).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fs/cache/bcache.h"

struct journal;

/* Where the journal lies: in a file, whose blocks need not be contiguous. */
struct journal_place {
	struct block_device *device;
	uint32_t block_size; /* bytes */
	uint32_t blocks;     /* of the file */
	/* Block number `logical` of the file. Returns 0 or a negative errno. */
	int (*map)(void *context, uint32_t logical, uint64_t *physical);
	void *context;
};

/* Opens a journal, with its superblock checked. -EUCLEAN for one that contradicts itself,
 * -EOPNOTSUPP for a feature that we do not know (the console says which), -ENOMEM, or the device's
 * error. Nothing is written. */
int journal_open(const struct journal_place *place, struct journal **out);

/* Is there something to replay? */
bool journal_needs_recovery(const struct journal *journal);

/* Replays what was committed, flushes, and empties the journal. *blocks, unless NULL: how many
 * blocks were written. May be cut off at any write and called again. -EUCLEAN or the device's
 * error. Call it before the file system's blocks are read into the cache. */
int journal_recover(struct journal *journal, uint32_t *blocks);

/* Commits, writes everything to its place, and empties the journal. Then frees it, whatever
 * happened. */
int journal_close(struct journal *journal);

/* How many blocks one call may change at most between begin and end. */
uint32_t journal_limit(const struct journal *journal);

/* Begins a change of at most `blocks` blocks. May commit first, to make room. Calls may be nested:
 * only the outermost one counts. -ENOSPC if blocks is above journal_limit, -EROFS, or an error. */
int journal_begin(struct journal *journal, uint32_t blocks);

/* Between begin and end of a long work (truncating a large file) at a place where what is on the
 * disk may be cut off: room for `blocks` more. */
int journal_extend(struct journal *journal, uint32_t blocks);
void journal_end(struct journal *journal);

/* The block becomes part of the open transaction. Call it before each change of its data; it is
 * held until it was committed. */
int journal_change(struct journal *journal, struct cached_block *block);

/* Blocks that held metadata were freed: an older copy of theirs must not be replayed, since they
 * may hold a file's data by then. Forgets what the cache has of them. */
int journal_revoke(struct journal *journal, uint64_t first, uint64_t count);

/* The number of the open transaction, and of the last one that is safe on the disk. */
uint32_t journal_open_number(const struct journal *journal);
uint32_t journal_committed_number(const struct journal *journal);

/* Commits the open transaction: data that was written before is flushed with it. When it returns 0
 * all that was changed survives a power cut. Nothing open: flushes the drive only. */
int journal_commit(struct journal *journal);

/* Called after each commit, before journal_commit returns; NULL: nobody. (Blocks that the
 * transaction freed may be used again from then on.) */
void journal_on_commit(struct journal *journal, void (*call)(void *context), void *context);
