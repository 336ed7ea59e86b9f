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
 * every call gives -EROFS. What was committed until then is in the log; the next mount replays it.
 *
 * Known: revoke blocks, block numbers of 64 bits, checksums of version 1 (checked by recovery
 * only), 2 and 3. Refused: asynchronous commits, superblocks of version 1, journals on a device of
 * their own. Of fast commits only their absence is understood: where there are some to be replayed,
 * journal_recover refuses; otherwise their part of the file is left alone.
 *
 * Format: docs.kernel.org, "ext4 Data Structures and Algorithms", 3.6 Journal (jbd2).
 */
#pragma once

#include "fs/cache/bcache.h"

struct journal;

/* Where the journal is: in a file, whose blocks need not be contiguous. */
struct journal_place {
	struct block_device *device;
	uint32_t block_size; /* bytes */
	uint32_t blocks;     /* of the file */
	/* Block number `logical` of the file. Returns 0 or a negative errno. Called by journal_open
	 * only. */
	int (*map)(void *context, uint32_t logical, uint64_t *physical);
	void *context;
	uint64_t (*now)(void); /* ns since 1970, for commit blocks; NULL: they say 0 */
	bool no_barriers;      /* no flushes: fast, and a power cut may leave anything */
	bool wide;	       /* the file system has 64bit: a journal to write gets it, too */
	bool checksums;	       /* it has metadata_csum: a journal to write gets checksums */
};

/* Opens a journal, with its superblock checked. -EUCLEAN for one that contradicts itself,
 * -EOPNOTSUPP for a feature that we do not know (the console says which), -ENOMEM, or the device's
 * error. Nothing is written. */
int journal_open(const struct journal_place *place, struct journal **out);

/* Where the blocks of its file are: piece `index`, as long as there is one. */
bool journal_piece(const struct journal *journal, uint32_t index, uint64_t *first, uint32_t *count);

/* Is there something to replay? */
bool journal_needs_recovery(const struct journal *journal);

/* Replays what was committed, flushes, and empties the journal. *blocks, unless NULL: how many
 * blocks were written. May be cut off at any write and called again. -EUCLEAN, -EOPNOTSUPP (fast
 * commits), -ENOMEM or the device's error: then nothing was emptied. The cache forgets the blocks
 * that were written; the caller must have no references to them, nor copies. */
int journal_recover(struct journal *journal, uint32_t *blocks);

/* Commits, writes everything to its place, and empties the journal. Then frees it, whatever
 * happened. After an error the log is as it was, and what was not committed is forgotten. */
int journal_close(struct journal *journal);

/* Nothing is written any more, because something could not be. NULL, no journal: false. */
bool journal_is_aborted(const struct journal *journal);

/* How many blocks one call may change at most between begin and end. */
uint32_t journal_limit(const struct journal *journal);

/* Begins a change of at most `blocks` blocks. May commit first, to make room. Calls may be nested:
 * only the outermost one counts. -ENOSPC if blocks is above journal_limit, -EROFS, or an error. */
int journal_begin(struct journal *journal, uint32_t blocks);

/* Between begin and end of a long work (truncating a large file) at a place where what is on the
 * disk may be cut off: room for `blocks` more. */
int journal_extend(struct journal *journal, uint32_t blocks);
void journal_end(struct journal *journal);

/* The block, which the caller has a reference to, becomes part of the open transaction. Call it
 * before its data is changed; it is held until it was committed. -ENOSPC when there are more than
 * journal_begin was told and the log has no room for another. */
int journal_change(struct journal *journal, struct cached_block *block);

/* Between begin and end: blocks that held metadata were freed. An older copy of theirs must not be
 * replayed, since they may hold a file's data by then. Forgets what the cache has of them. -ENOMEM,
 * or -ENOSPC for more blocks than an eighth of the log can name (16,000 in 1 MiB). */
int journal_revoke(struct journal *journal, uint64_t first, uint64_t count);

/* The number of the open transaction. */
uint32_t journal_open_number(const struct journal *journal);

/* Commits the open transaction: data that was written before is flushed with it. When it returns 0
 * all that was changed survives a power cut. Nothing open: flushes the drive only. -EBUSY between
 * begin and end. */
int journal_commit(struct journal *journal);

/* Called after each commit, before journal_commit returns; NULL: nobody. (Blocks that the
 * transaction freed may be used again from then on.) */
void journal_on_commit(struct journal *journal, void (*call)(void *context), void *context);
