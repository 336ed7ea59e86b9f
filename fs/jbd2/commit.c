/*
 * Commit: a transaction becomes one with the file system, whole or not at all.
 *
 *	1  data of files is on its way already: fs/ext wrote it before it changed metadata
 *	2  revoke blocks, descriptor blocks and copies go into the log
 *	3  FLUSH	all of 1 and 2 is on the disk
 *	4  the commit block goes into the log
 *	5  FLUSH	now the transaction is safe, and journal_commit returns
 *
 *	log	4 descriptor: 7001, 912 | 5 copy | 6 copy |		7 commit 18
 *		----------- in any order ---------------- FLUSH	---------- FLUSH
 *
 * A drive may write what it has been given in any order, until a flush. Without the first one the
 * commit block may be on the disk and a copy not: recovery would replay whatever the log held there
 * before. Without the second one the caller believes that its changes are safe, and they are not.
 *
 * Checkpoint: the changed blocks go to their places, some time later, and the log is free again.
 * Here, too, the order is what counts: first the blocks, FLUSH, then the superblock that no longer
 * knows their copies, FLUSH, and only then is their part of the log overwritten.
 */
#include "fs/jbd2/internal.h"
#include "kernel/lib/divide.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"

#define NS_PER_SECOND 1000000000u

static uint32_t tags_per_descriptor(const struct journal *journal)
{
	uint32_t room = journal_usable(journal) - sizeof(struct journal_header);

	return (room - JOURNAL_UUID_SIZE) / journal->tag_size;
}

static uint32_t divide_up(uint32_t dividend, uint32_t divisor)
{
	return (dividend + divisor - 1) / divisor;
}

uint32_t journal_size(const struct journal *journal, uint32_t copies, uint32_t revoked)
{
	return copies + divide_up(copies, tags_per_descriptor(journal)) +
	       divide_up(revoked, journal_revokes_per_block(journal)) + 1;
}

/* ---- copies ---- */

static uint32_t first_word(const uint8_t *data)
{
	return *(const uint32_t *)data;
}

/* A copy that begins like a block of the log itself could be taken for one. */
static bool must_be_escaped(const struct cached_block *block)
{
	return first_word(block->data) == big32(JOURNAL_MAGIC);
}

/* Writes a tag at a place in the descriptor. Returns its length, with the UUID of the first. */
static uint32_t put_tag(const struct journal *journal, uint8_t *at,
			const struct cached_block *block, uint32_t flags)
{
	bool is_version_3 = journal_has(journal, JOURNAL_INCOMPAT_CSUM_V3);
	uint32_t word = must_be_escaped(block) ? 0 : first_word(block->data), crc = 0;

	if (must_be_escaped(block))
		flags |= TAG_ESCAPED;
	if (journal->has_checksums)
		crc = journal_copy_checksum(journal, word, block->data, journal->sequence);
	const uint32_t words[JOURNAL_TAG_WORDS] = {
		big32((uint32_t)block->block),
		big32(is_version_3 ? flags : crc << 16 | flags),
		big32(block->block >> 32),
		is_version_3 ? big32(crc) : 0,
	};

	memcpy(at, words, journal->tag_size);
	if (flags & TAG_SAME_UUID)
		return journal->tag_size;
	memcpy(at + journal->tag_size, journal->super->s_uuid, JOURNAL_UUID_SIZE);
	return journal->tag_size + JOURNAL_UUID_SIZE;
}

/* The descriptor must be complete before the first copy may push it out of the buffer. */
static int add_descriptor(struct journal *journal, const struct list *link, uint32_t count)
{
	uint32_t flags = 0;
	uint8_t *block;
	int error = journal_add(journal, JOURNAL_DESCRIPTOR, &block);

	if (error)
		return error;
	uint8_t *at = block + sizeof(struct journal_header);

	for (; count > 0; count--, link = link->next, flags = TAG_SAME_UUID)
		at += put_tag(journal, at, list_entry(link, struct cached_block, held),
			      count == 1 ? flags | TAG_LAST : flags);
	journal_seal(journal, block, journal_usable(journal));
	return 0;
}

static int add_copy(struct journal *journal, const struct cached_block *block)
{
	uint8_t *copy;
	int error = journal_add(journal, JOURNAL_COPY, &copy);

	if (error)
		return error;
	memcpy(copy, block->data, journal->place.block_size);
	if (must_be_escaped(block))
		memset(copy, 0, sizeof(uint32_t));
	return 0;
}

/* Descriptors, each with its copies after it. */
static int add_copies(struct journal *journal)
{
	const struct list *link = journal->held.next;
	uint32_t most = tags_per_descriptor(journal);
	int error = 0;

	for (; link != &journal->held; link = link->next)
		bcache_seal(list_entry(link, struct cached_block, held));
	link = journal->held.next;
	for (uint32_t left = journal->changed; left > 0 && !error;) {
		uint32_t count = left < most ? left : most;

		error = add_descriptor(journal, link, count);
		for (left -= count; count > 0 && !error; count--, link = link->next)
			error = add_copy(journal, list_entry(link, struct cached_block, held));
	}
	return error;
}

/* ---- commit ---- */

static int add_commit_block(struct journal *journal)
{
	uint64_t now = journal->place.now ? journal->place.now() : 0;
	uint32_t nanoseconds;
	uint8_t *block;
	int error = journal_add(journal, JOURNAL_COMMIT, &block);

	if (error)
		return error;
	struct journal_commit_header *header = (struct journal_commit_header *)block;

	now = divide64(now, NS_PER_SECOND, &nanoseconds);
	header->h_commit_sec_high = big32(now >> 32);
	header->h_commit_sec = big32((uint32_t)now);
	header->h_commit_nsec = big32(nanoseconds);
	journal_seal(journal, block, offsetof(struct journal_commit_header, h_chksum));
	return 0;
}

/* EXERCISE S5 (the journal: commit and replay):
   - write_transaction puts the open transaction into the log, so that after a power cut at any
     moment recovery finds it whole, or not at all; when it returns 0, it is safe. Until the first
     one after the mount (is_marked) the superblock says that there is no log: after it, that the
     log begins with this one: at the block that was `head` before it, with `sequence`.
   - journal_checkpoint, below: nothing is held, so every dirty block is what was committed last.
     All go to their places, and the log is free again (journal->free): the superblock says that it
     begins at `head`, or (is_last) that it is empty. An error aborts the journal:
     journal_abort(journal, "a checkpoint", error). What it has written is safe when it returns 0.
   - both write nothing more after an error.
   - given: journal_add_revokes, add_copies, add_commit_block, which only fill the log's buffer;
     journal_write_out, journal_write_super, journal_barrier; bcache_write_all.
   - the rest of the exercise is in recover.c, revoke.c and log.c.

   Pitfalls: a drive writes in any order what it was given since the last flush. What is in the
   buffer is not on its way to the drive. Which of the old log, the places and the superblock may be
   newer than the others after a power cut, and which may not? */
/* SOLUTION S5 { */
static int write_transaction(struct journal *journal)
{
	int error = 0;

	if (!journal->is_marked)
		error = journal_write_super(journal, journal->head, journal->sequence);
	return error
		       ?: journal_add_revokes(journal)
		       ?: add_copies(journal)
		       ?: journal_write_out(journal)
		       ?: journal_barrier(journal)
		       ?: add_commit_block(journal)
		       ?: journal_write_out(journal)
		       ?: journal_barrier(journal);
}
/* } SOLUTION S5 */

void journal_release(struct journal *journal, struct cached_block *block)
{
	list_remove(&block->held);
	block->transaction = NULL;
	journal->changed--;
}

/* They are dirty, and may be written to their places from now on; those that are lost never, and
 * the contents before them are in the log. */
void journal_release_all(struct journal *journal, bool is_lost)
{
	while (!list_is_empty(&journal->held)) {
		struct cached_block *block =
		    list_entry(journal->held.next, struct cached_block, held);

		journal_release(journal, block);
		if (is_lost)
			bcache_forget(block->device, block->block, 1, block->size);
	}
	revoke_table_clear(&journal->revoked);
}

int journal_commit_open(struct journal *journal)
{
	if (journal->changed == 0 && journal->revoked.count == 0)
		return 0;
	int error = write_transaction(journal);

	if (error)
		return journal_abort(journal, "a commit", error);
	journal_release_all(journal, false);
	journal->sequence++;
	if (journal->on_commit)
		journal->on_commit(journal->on_commit_context);
	return 0;
}

int journal_commit(struct journal *journal)
{
	if (journal->is_aborted)
		return -EROFS;
	if (journal->depth > 0)
		return -EBUSY;
	if (journal->changed > 0 || journal->revoked.count > 0)
		return journal_commit_open(journal);
	int error = journal_barrier(journal);

	return error ? journal_abort(journal, "a flush", error) : 0;
}

/* ---- checkpoint ---- */

/* SOLUTION S5 { */
int journal_checkpoint(struct journal *journal, bool is_last)
{
	uint32_t start = is_last ? 0 : journal->head;
	int error = bcache_write_all(journal->place.device)
			?: journal_barrier(journal)
			?: journal_write_super(journal, start, journal->sequence)
			?: journal_barrier(journal);

	if (error)
		return journal_abort(journal, "a checkpoint", error);
	journal->free = journal->end - journal->first;
	return 0;
}
/* } SOLUTION S5 */
