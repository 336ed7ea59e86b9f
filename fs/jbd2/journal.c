/*
 * The journal: opened and closed, and changes that are collected in one transaction.
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
#include "fs/jbd2/journal.h"

#include <stdarg.h>

#include "fs/jbd2/internal.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/report/printk.h"
#include "mm/page_alloc.h"

#define BLOCKS_MIN   16u /* of a log */
#define BUFFER_ORDER 4	 /* pages, if memory is not in pieces */

#define INCOMPAT_KNOWN                                                                             \
	(JOURNAL_INCOMPAT_REVOKE | JOURNAL_INCOMPAT_64BIT | JOURNAL_INCOMPAT_CSUM_V2 |             \
	 JOURNAL_INCOMPAT_CSUM_V3 | JOURNAL_INCOMPAT_FAST_COMMIT)

_Static_assert(sizeof(struct journal) <= PAGE_SIZE, "a journal is one page");

int journal_corrupt(const struct journal *journal, const char *format, ...)
{
	char text[128];
	va_list arguments;

	va_start(arguments, format);
	vsnprintk(text, sizeof(text), format, arguments);
	va_end(arguments);
	printk("%s: journal: %s\n", journal->place.device->name, text);
	return -EUCLEAN;
}

int journal_abort(struct journal *journal, const char *what, int error)
{
	if (!journal->is_aborted)
		printk("%s: journal: %s failed (error %d): nothing is written from now on\n",
		       journal->place.device->name, what, -error);
	journal->is_aborted = true;
	return -EROFS;
}

/* ---- open and close ---- */

static int refuse(const struct journal *journal, const char *what)
{
	printk("%s: journal: %s: not supported; run e2fsck\n", journal->place.device->name, what);
	return -EOPNOTSUPP;
}

static int check_features(const struct journal *journal)
{
	const struct journal_super *super = journal->super;
	uint32_t unknown = big32(super->s_feature_incompat) & ~INCOMPAT_KNOWN;
	char text[32];

	if (unknown & JOURNAL_INCOMPAT_ASYNC_COMMIT)
		return refuse(journal, "asynchronous commits");
	snprintk(text, sizeof(text), "features 0x%x", unknown);
	if (unknown)
		return refuse(journal, text);
	if (big32(super->s_nr_users) > 1)
		return refuse(journal, "a journal that several file systems share");
	if (journal_has(journal, JOURNAL_INCOMPAT_CSUM_V2) &&
	    journal_has(journal, JOURNAL_INCOMPAT_CSUM_V3))
		return journal_corrupt(journal, "it has checksums of versions 2 and 3");
	return 0;
}

static int check_checksum(const struct journal *journal)
{
	struct journal_super *super = journal->super;
	uint32_t stored = super->s_checksum, computed;

	if (!journal->has_checksums)
		return 0;
	if (super->s_checksum_type != JOURNAL_CRC32C)
		return journal_corrupt(journal, "checksum type %u, not %u", super->s_checksum_type,
				       JOURNAL_CRC32C);
	super->s_checksum = 0;
	computed = big32(crc32c(~0u, super, sizeof(*super)));
	super->s_checksum = stored;
	if (stored != computed)
		return journal_corrupt(journal,
				       "superblock: checksum 0x%08x, but the contents give 0x%08x",
				       big32(stored), big32(computed));
	return 0;
}

/* Where the log is. The area for fast commits is at the end of the file, after it. */
static int check_log(struct journal *journal)
{
	const struct journal_super *super = journal->super;
	uint32_t first = big32(super->s_first), end = big32(super->s_maxlen);
	uint32_t start = big32(super->s_start), fast = big32(super->s_num_fc_blks);

	if (end > journal->place.blocks)
		return journal_corrupt(journal, "%u blocks, but its file has %u", end,
				       journal->place.blocks);
	if (fast == 0)
		fast = JOURNAL_FAST_BLOCKS;
	if (journal_has(journal, JOURNAL_INCOMPAT_FAST_COMMIT))
		end -= fast < end ? fast : end;
	if (first == 0 || first >= end || end - first < BLOCKS_MIN)
		return journal_corrupt(journal, "the log is from %u to %u", first, end);
	if (start != 0 && (start < first || start >= end))
		return journal_corrupt(journal, "it begins at %u, but the log is from %u to %u",
				       start, first, end);
	journal->first = journal->head = first;
	journal->end = end;
	journal->free = end - first;
	journal->sequence = big32(super->s_sequence);
	journal->needs_recovery = start != 0;
	return 0;
}

static int read_super(struct journal *journal)
{
	uint8_t *block;
	int error = journal_read(journal, 0, &block);
	const struct journal_header *header = &journal->super->header;

	if (error)
		return error;
	memcpy(journal->super, block, journal->place.block_size);
	journal->buffered = 0; /* what was read ahead must not be written with the first commit */
	if (header->h_magic != big32(JOURNAL_MAGIC))
		return journal_corrupt(journal, "superblock: magic 0x%08x, not 0x%08x",
				       big32(header->h_magic), JOURNAL_MAGIC);
	if (header->h_blocktype == big32(JOURNAL_SUPER_1))
		return refuse(journal, "a superblock of version 1");
	if (header->h_blocktype != big32(JOURNAL_SUPER_2))
		return journal_corrupt(journal, "superblock: type %u", big32(header->h_blocktype));
	if (big32(journal->super->s_blocksize) != journal->place.block_size)
		return journal_corrupt(journal, "blocks of %u bytes, not %u",
				       big32(journal->super->s_blocksize),
				       journal->place.block_size);
	return 0;
}

static void release(struct journal *journal)
{
	if (journal->super)
		page_free(journal->super, 0);
	if (journal->scratch)
		page_free(journal->scratch, 0);
	if (journal->runs)
		page_free(journal->runs, JOURNAL_RUNS_ORDER);
	if (journal->buffer)
		page_free(journal->buffer, journal->buffer_order);
	revoke_table_close(&journal->revoked);
	page_free(journal, 0);
}

/* The buffer is as large as memory allows; one page is enough. */
static int allocate(struct journal *journal)
{
	unsigned order = BUFFER_ORDER;

	journal->super = page_alloc(0);
	journal->scratch = page_alloc(0);
	while ((journal->buffer = page_alloc(order)) == NULL && order > 0)
		order--;
	journal->buffer_order = order;
	journal->buffer_blocks = (PAGE_SIZE << order) / journal->place.block_size;
	if (!journal->super || !journal->scratch || !journal->buffer)
		return -ENOMEM;
	return revoke_table_open(&journal->revoked);
}

/* Each step may rely on those before it. `end` is set before the first block is read. */
static int open(struct journal *journal)
{
	int error = allocate(journal);

	journal->end = 1;
	if (!error)
		error = journal_find_runs(journal);
	if (!error)
		error = read_super(journal);
	if (!error)
		error = check_features(journal);
	if (error)
		return error;
	journal_use_features(journal);
	error = check_checksum(journal);
	return error ? error : check_log(journal);
}

int journal_open(const struct journal_place *place, struct journal **out)
{
	struct journal *journal = page_alloc(0);
	int error;

	if (journal == NULL)
		return -ENOMEM;
	memset(journal, 0, sizeof(*journal));
	journal->place = *place;
	journal->held = (struct list)LIST_EMPTY(journal->held);
	error = open(journal);
	if (error)
		release(journal);
	else
		*out = journal;
	return error;
}

bool journal_needs_recovery(const struct journal *journal)
{
	return journal->needs_recovery;
}

/* What was not committed is not to be written, ever; the contents before it are in the log. */
static void forget_held(struct journal *journal)
{
	while (!list_is_empty(&journal->held)) {
		struct cached_block *block =
		    list_entry(journal->held.next, struct cached_block, held);

		list_remove(&block->held);
		block->transaction = NULL;
		bcache_forget(block->device, block->block, 1, block->size);
	}
}

static bool is_in_use(const struct journal *journal)
{
	return journal->is_marked || journal->changed > 0 || journal->revoked.count > 0;
}

/* A last checkpoint, after which the superblock says that the log is empty. */
int journal_close(struct journal *journal)
{
	int error = journal->is_aborted ? -EROFS : 0;

	if (!error && is_in_use(journal)) {
		error = journal_commit_open(journal);
		if (!error)
			error = journal_checkpoint(journal, true);
	}
	forget_held(journal);
	release(journal);
	return error;
}

/* ---- changes ---- */

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

/* Makes the transaction, and the log, ready for so many blocks more. */
static int make_room(struct journal *journal, uint32_t blocks)
{
	int error = 0;

	if (blocks > journal_limit(journal))
		return -ENOSPC;
	if (journal->changed + blocks > journal_limit(journal) ||
	    journal->revoked.count > revoke_limit(journal) / 2)
		error = journal_commit_open(journal);
	if (error || journal_size(journal, journal->changed + blocks, revoke_limit(journal)) <=
			 journal->free)
		return error;
	error = journal_commit_open(journal);
	return error ? error : journal_checkpoint(journal, false);
}

int journal_begin(struct journal *journal, uint32_t blocks)
{
	int error = 0;

	if (journal->is_aborted || journal->needs_recovery)
		return -EROFS;
	if (!journal->is_prepared)
		journal_prepare(journal);
	if (journal->depth == 0)
		error = make_room(journal, blocks);
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
		return make_room(journal, blocks);
	return journal_size(journal, journal->changed + blocks, revoke_limit(journal)) <=
		       journal->free
		   ? 0
		   : -ENOSPC;
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
	if (block->device != journal->place.device || block->transaction != NULL)
		return -EINVAL;
	if (journal_size(journal, journal->changed + 1, revoke_limit(journal)) > journal->free)
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

	if (cached != NULL && cached->transaction == journal) {
		list_remove(&cached->held);
		cached->transaction = NULL;
		journal->changed--;
	}
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

uint32_t journal_committed_number(const struct journal *journal)
{
	return journal->sequence - 1;
}

void journal_on_commit(struct journal *journal, void (*call)(void *context), void *context)
{
	journal->on_commit = call;
	journal->on_commit_context = context;
}
