/*
 * Changes: blocks that are changed or freed are collected in one transaction.
 *
 *	block	0     1          2     3    4         5           6     7
 *		super descriptor 7001  912  commit 17 descriptor  7001  (commit 18)
 *		|     |----- transaction 17 --------| |-- transaction 18 --|
 *		s_start 1, s_sequence 17	      head: 7
 *
 * Transaction 17 is committed: blocks 7001 and 912 have copies in the log, and are dirty in the
 * cache. They may be written to their places at any time, or never: recovery would do it. 7001 was
 * changed again, in transaction 18, and is held now: it must not be written to its place before 18
 * is committed. If the power fails before, recovery finds its older version in 17.
 *
 * So the log of 17 may be overwritten only when 7001 and 912 are in their places. The rule is
 * simple: the log is freed only at moments when no transaction is open, so that no block is held.
 * Then every dirty block is exactly what was committed last; all of them are written, and the whole
 * log is free (journal_checkpoint). journal_begin does that when the log has no room for one more
 * transaction.
 *
 * Invariants: a block is in journal->held if and only if its `transaction` is the journal. Between
 * begin and end, the log has room for what the transaction may become.
 */
#include "fs/jbd2/internal.h"
#include "kernel/lib/errno.h"

/* A quarter of the log, so that three transactions are committed for each checkpoint; and no more
 * than half of the cache, because held blocks cannot leave it. */
uint32_t journal_limit(const struct journal *journal)
{
	uint32_t log = (journal->end - journal->first) / 4, cache = bcache_size() / 2;

	return log < cache ? log : cache;
}

/* An eighth of the log is for revoke blocks. */
static uint32_t revoke_limit(const struct journal *journal)
{
	return (journal->end - journal->first) / 8 * journal_revokes_per_block(journal);
}

/* Has the log room for the transaction with this many blocks more? */
static bool fits_into_log(const struct journal *journal, uint32_t blocks)
{
	return journal_size(journal, journal->changed + blocks, revoke_limit(journal)) <=
	       journal->free;
}

/* Makes the transaction, and the log, ready for this many blocks more. */
static int make_room_in_log(struct journal *journal, uint32_t blocks)
{
	int error = 0;

	if (blocks > journal_limit(journal))
		return -ENOSPC;
	if (journal->changed + blocks > journal_limit(journal) ||
	    journal->revoked.count > revoke_limit(journal) / 2)
		error = journal_commit_open(journal);
	if (error || fits_into_log(journal, blocks))
		return error;
	return journal_commit_open(journal) ?: journal_checkpoint(journal, false);
}

int journal_begin(struct journal *journal, uint32_t blocks)
{
	int error = 0;

	if (journal->is_aborted || journal->needs_recovery)
		return -EROFS;
	if (!journal->is_prepared)
		journal_prepare(journal);
	if (journal->depth == 0)
		error = make_room_in_log(journal, blocks);
	if (!error)
		journal->depth++;
	return error;
}

/* Inside another change there is no place to cut it off: then it must fit as it is. */
int journal_extend(struct journal *journal, uint32_t blocks)
{
	if (journal->is_aborted)
		return -EROFS;
	if (journal->depth <= 1)
		return make_room_in_log(journal, blocks);
	return fits_into_log(journal, blocks) ? 0 : -ENOSPC;
}

void journal_end(struct journal *journal)
{
	if (journal->depth > 0)
		journal->depth--;
}

/* A block that is changed in this transaction is replayed with it, even if it was revoked before,
 * when it was freed. */
int journal_change(struct journal *journal, struct cached_block *block)
{
	if (journal->is_aborted || journal->depth == 0)
		return -EROFS;
	if (block->transaction == journal)
		return 0;
	if (block->device != journal->place.device || block->transaction)
		return -EINVAL;
	if (!fits_into_log(journal, 1))
		return -ENOSPC;
	revoke_remove(&journal->revoked, block->block);
	list_append(&journal->held, &block->held);
	block->transaction = journal;
	journal->changed++;
	bcache_mark_dirty(block);
	return 0;
}

static int revoke_one(struct journal *journal, uint64_t block)
{
	uint32_t size = journal->place.block_size;
	struct cached_block *cached = bcache_find(journal->place.device, block, size);

	if (cached && cached->transaction == journal)
		journal_release(journal, cached);
	bcache_put(cached);
	bcache_forget(journal->place.device, block, 1, size);
	return revoke_add(&journal->revoked, block, journal->sequence);
}

int journal_revoke(struct journal *journal, uint64_t first, uint64_t count)
{
	int error = 0;

	if (journal->is_aborted || journal->depth == 0)
		return -EROFS;
	if (count > revoke_limit(journal) - journal->revoked.count)
		return -ENOSPC;
	for (uint64_t i = 0; i < count && !error; i++)
		error = revoke_one(journal, first + i);
	return error;
}

uint32_t journal_open_number(const struct journal *journal)
{
	return journal->sequence;
}

void journal_on_commit(struct journal *journal, void (*call)(void *context), void *context)
{
	journal->on_commit = call;
	journal->on_commit_context = context;
}
