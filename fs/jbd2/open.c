/*
 * Opens a journal, after its superblock was checked, and closes it.
 *
 * The superblock comes from outside: it is a list of checks, and the rest of the journal may rely
 * on each of them. The most important: the log is a range of the file's blocks, so no block of the
 * log is ever outside it; and every feature that changes the format is known.
 *
 *	journal_find_runs	where the file's blocks are; all of them are on the device
 *	read_journal_super	magic, version, size of a block
 *	check_journal_features	none that we do not know
 *	check_journal_checksum	the superblock is as it was written; before it nothing is believed
 *	check_log		first, end and start are in the file, in this order
 *
 * What cannot be (-EUCLEAN) and what we do not know (-EOPNOTSUPP) differ: e2fsck repairs the first,
 * and the second is another driver's journal, which may be sound.
 *
 * Only journal_close writes: it commits, writes everything to its place, and leaves an empty log.
 */
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

/* For what is sound and not known. */
static int refuse(const struct journal *journal, const char *what)
{
	printk("%s: journal: %s: not supported; run e2fsck\n", journal->place.device->name, what);
	return -EOPNOTSUPP;
}

/* -EOPNOTSUPP, named; -EUCLEAN for features that exclude each other. */
static int check_journal_features(const struct journal *journal)
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

/* Only journals with checksums of version 2 or 3 have one in the superblock. */
static int check_journal_checksum(const struct journal *journal)
{
	const struct journal_super *super = journal->super;
	uint32_t stored = big32(super->s_checksum), computed = journal_super_checksum(super);

	if (!journal->has_checksums)
		return 0;
	if (super->s_checksum_type != JOURNAL_CRC32C)
		return journal_corrupt(journal, "checksum type %u, not %u", super->s_checksum_type,
				       JOURNAL_CRC32C);
	if (stored != computed)
		return journal_corrupt(journal,
				       "superblock: checksum 0x%08x, but the contents give 0x%08x",
				       stored, computed);
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

/* The first block of the file, whole: journal_write_super writes all of it back. */
static int read_journal_super(struct journal *journal)
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

/* Whatever of it there is; also after an error in the middle of opening. */
static void free_journal(struct journal *journal)
{
	if (journal->buffer)
		page_free(journal->buffer, journal->buffer_order);
	revoke_table_close(&journal->revoked);
	page_free(journal, JOURNAL_ORDER);
}

/* The buffer is as large as memory allows; one page is enough. */
static int allocate_log_buffer(struct journal *journal)
{
	unsigned order = BUFFER_ORDER;

	while (!(journal->buffer = page_alloc(order)) && order > 0)
		order--;
	journal->buffer_order = order;
	journal->buffer_blocks = (PAGE_SIZE << order) / journal->place.block_size;
	return journal->buffer ? revoke_table_open(&journal->revoked, 0) : -ENOMEM;
}

/* Each step may rely on those before it. `end` is set before the first block is read. */
static int open(struct journal *journal)
{
	journal->end = 1;
	int error = allocate_log_buffer(journal)
			?: journal_find_runs(journal)
			?: read_journal_super(journal)
			?: check_journal_features(journal);

	if (error)
		return error;
	journal_use_features(journal);
	return check_journal_checksum(journal) ?: check_log(journal);
}

/* The memory is zero but for the superblock, the scratch page and the runs, which are filled before
 * they are read. -EUCLEAN, -EOPNOTSUPP, -ENOMEM, or the drive's error: then nothing is left. */
int journal_open(const struct journal_place *place, struct journal **out)
{
	struct journal *journal = page_alloc(JOURNAL_ORDER);
	uint8_t *pages = (uint8_t *)journal;

	if (!journal)
		return -ENOMEM;
	*journal = (struct journal){ .place = *place, .held = LIST_EMPTY(journal->held) };
	journal->super = (struct journal_super *)(pages + PAGE_SIZE);
	journal->scratch = pages + 2 * PAGE_SIZE;
	journal->runs = (struct journal_run *)(pages + 3 * PAGE_SIZE);
	int error = open(journal);

	if (error)
		free_journal(journal);
	else
		*out = journal;
	return error;
}

/* A log that is not empty: the last session did not end. */
bool journal_needs_recovery(const struct journal *journal)
{
	return journal->needs_recovery;
}

static bool is_in_use(const struct journal *journal)
{
	return journal->is_marked || journal->changed > 0 || journal->revoked.count > 0;
}

/* A last checkpoint, after which the superblock says that the log is empty. */
/* The first error is returned, and the journal is freed in any case. */
int journal_close(struct journal *journal)
{
	int error = journal->is_aborted ? -EROFS : 0;

	if (!error && is_in_use(journal))
		error = journal_commit_open(journal) ?: journal_checkpoint(journal, true);
	journal_release_all(journal, true);
	free_journal(journal);
	return error;
}
