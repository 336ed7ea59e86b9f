/*
 * Recovery: replays what was committed, in three passes over the log, from where the superblock
 * says that it begins, to the first transaction that is not complete.
 *
 *	log	17: blocks 500, 912, commit | 18: revoke 500, commit | 19: blocks ...
 *
 *	scan	17 is complete, 18 is; 19 has no commit block: the log ends before 19
 *	revoke	no copy of block 500 up to transaction 18 may be replayed
 *	replay	17: 912 is written to its place, and 500 is not
 *
 * Every block that is not a copy must begin with the magic and the number of the transaction that
 * is expected. What an earlier round of the log left has smaller numbers, so it ends the log, as do
 * a torn block (its checksum is wrong) and a block of any other kind. Such an end is what a power
 * cut leaves, not damage.
 *
 * Nothing in the log is changed before all of it is in its place, so recovery can be cut off at any
 * write, and the next one writes the same again. The next transaction gets a number that the one
 * that was not complete did not have, because blocks of that one may be anywhere in the log.
 */
#include "fs/jbd2/internal.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/report/printk.h"

/* Results of a step; or a negative errno. */
enum { LOG_ENDS = 0, GO_ON = 1 };

enum pass { SCAN, REVOKE, REPLAY };

struct walk {
	struct journal *journal;
	enum pass pass;
	uint32_t block;	   /* of the log: the next one */
	uint32_t left;	   /* blocks of the log not visited yet: no walk goes round twice */
	uint32_t sequence; /* of the transaction that is read */
	uint32_t end;	   /* the first one that is not complete; SCAN finds it */
	uint32_t crc;	   /* of the transaction so far, for checksums of version 1 */
	uint32_t written;  /* blocks */
};

struct tag {
	uint64_t block;
	uint32_t flags;
	uint32_t checksum;
};

static int skip_block(struct walk *walk)
{
	if (walk->left == 0)
		return LOG_ENDS;
	walk->left--;
	walk->block = journal_after(walk->journal, walk->block);
	return GO_ON;
}

static int read_block(struct walk *walk, uint8_t **block)
{
	uint32_t at = walk->block;
	int result = skip_block(walk);
	int error = result == GO_ON ? journal_read(walk->journal, at, block) : 0;

	return error ?: result;
}

/* ---- checksums ---- */

static uint32_t word_at(const uint8_t *block, uint32_t offset)
{
	uint32_t word;

	memcpy(&word, block + offset, sizeof(word));
	return big32(word);
}

/* Whether the checksum at a place in a block is right. */
static bool is_intact(const struct journal *journal, const uint8_t *block, uint32_t field)
{
	return !journal->has_checksums ||
	       word_at(block, field) == journal_block_checksum(journal, block, field);
}

/* Of descriptor and revoke blocks it is at the end. */
static bool is_sealed(const struct journal *journal, const uint8_t *block)
{
	return is_intact(journal, block, journal->place.block_size - sizeof(uint32_t));
}

static bool has_version_1(const struct journal *journal)
{
	return !journal->has_checksums &&
	       (big32(journal->super->s_feature_compat) & JOURNAL_COMPAT_CHECKSUM) != 0;
}

static void add_to_crc(struct walk *walk, const uint8_t *block)
{
	if (walk->pass == SCAN && has_version_1(walk->journal))
		walk->crc = crc32_big_endian(walk->crc, block, walk->journal->place.block_size);
}

/* Version 1 has one checksum of all descriptors and copies; zeros mean that there is none. */
static bool commit_is_intact(const struct walk *walk, const uint8_t *block)
{
	const struct journal_commit_header *header = (const void *)block;
	uint32_t stored = big32(header->h_chksum[0]);

	if (!has_version_1(walk->journal) || walk->pass != SCAN)
		return is_intact(walk->journal, block,
				 offsetof(struct journal_commit_header, h_chksum));
	if (header->h_chksum_type == 0 && header->h_chksum_size == 0 && stored == 0)
		return true;
	return header->h_chksum_type == JOURNAL_CRC32 &&
	       header->h_chksum_size == JOURNAL_CRC32_SIZE && stored == walk->crc;
}

/* ---- descriptors and copies ---- */

/* Takes the next tag, at *at. False when the descriptor has no room for another one. */
static bool next_tag(const struct journal *journal, const uint8_t *descriptor, uint32_t *at,
		     struct tag *tag)
{
	const uint8_t *from = descriptor + *at;

	if (*at + journal->tag_size > journal_usable(journal))
		return false;
	tag->block = word_at(from, 0);
	tag->flags = word_at(from, 4);
	if (journal_has(journal, JOURNAL_INCOMPAT_CSUM_V3)) {
		tag->checksum = word_at(from, 12);
	} else { /* two halves of a word */
		tag->checksum = tag->flags >> 16;
		tag->flags &= 0xffff;
	}
	if (journal_has(journal, JOURNAL_INCOMPAT_64BIT))
		tag->block |= (uint64_t)word_at(from, 8) << 32;
	*at += journal->tag_size + (tag->flags & TAG_SAME_UUID ? 0 : JOURNAL_UUID_SIZE);
	return true;
}

/* Version 2 has room for half of the checksum. */
static bool copy_is_intact(const struct walk *walk, const struct tag *tag, const uint8_t *copy)
{
	const struct journal *journal = walk->journal;
	uint32_t mask = journal_has(journal, JOURNAL_INCOMPAT_CSUM_V3) ? ~0u : 0xffff;
	uint32_t word;

	if (!journal->has_checksums)
		return true;
	memcpy(&word, copy, sizeof(word));
	return tag->checksum == (journal_copy_checksum(journal, word, copy, walk->sequence) & mask);
}

static int scan_copy(struct walk *walk, const struct tag *tag)
{
	uint8_t *copy;

	if (!walk->journal->has_checksums && !has_version_1(walk->journal))
		return skip_block(walk);
	int result = read_block(walk, &copy);

	if (result != GO_ON)
		return result;
	add_to_crc(walk, copy);
	return copy_is_intact(walk, tag, copy) ? GO_ON : LOG_ENDS;
}

/* This pass sees only complete transactions, and nothing has been written yet: the last moment to
 * refuse a journal. */
static int check_copy(struct walk *walk, const struct tag *tag)
{
	if (!journal_on_device(walk->journal, tag->block))
		return journal_corrupt(walk->journal,
				       "transaction %u has block %ju, outside the device",
				       walk->sequence, tag->block);
	return skip_block(walk);
}

/* EXERCISE S5 (commit and replay; continued from commit.c):
   - replay_copy writes the next copy of the log to its place (block_write), unless the block is
     revoked, and counts it in walk->written. The cache must forget what it has read of the block
     (bcache_forget). A copy with TAG_ESCAPED has lost its first word, which was the magic.
   - visit_block takes the next block of the log (read_block) and does what its type asks for. It
     answers LOG_ENDS at the first block that does not continue the log: without the magic, of
     another transaction, or of a kind that is not one of the three; and, after SCAN, at the end
     that SCAN has found. visit_commit ends a transaction, if its commit block is intact
     (commit_is_intact): then the next one begins, with crc ~0.
   - finish: every copy was written to its place. Makes that safe, and then the log empty, with
     `next` as the number of the transaction that comes next; also of journal->sequence. That is
     safe, too, when it returns 0, and the journal needs no recovery any more (needs_recovery).
   - given: skip_block, which passes over a block without reading it; word_at; visit_descriptor and
     visit_revoke; revoke_covers, which is yours, too (revoke.c).

   Results are GO_ON, LOG_ENDS or a negative errno. Pitfalls: older transactions are still in the
   log after its end, whole. The power may fail here, too, after each write, and then recovery
   begins again. A copy that is revoked is in the log all the same: the walk must pass over it. */
/* SOLUTION S5 { */
/* The copy is in the buffer of the log, so its first word can be put back there. */
static int replay_copy(struct walk *walk, const struct tag *tag)
{
	const struct journal_place *place = &walk->journal->place;
	const uint32_t sectors = journal_sectors(walk->journal), magic = big32(JOURNAL_MAGIC);
	uint8_t *copy;

	if (revoke_covers(&walk->journal->revoked, tag->block, walk->sequence))
		return skip_block(walk);
	int result = read_block(walk, &copy);

	if (result != GO_ON)
		return result;
	if (tag->flags & TAG_ESCAPED)
		memcpy(copy, &magic, sizeof(magic));
	int error = block_write(place->device, tag->block * sectors, sectors, copy, BLOCK_OTHER);

	bcache_forget(place->device, tag->block, 1, place->block_size);
	walk->written++;
	return error ? error : GO_ON;
}
/* } SOLUTION S5 */

static int (*const visit_copy[])(struct walk *walk, const struct tag *tag) = {
	[SCAN] = scan_copy,
	[REVOKE] = check_copy,
	[REPLAY] = replay_copy,
};

/* Reading the copies moves the buffer, so the descriptor is copied first. */
static int visit_descriptor(struct walk *walk, const uint8_t *block)
{
	struct journal *journal = walk->journal;
	uint32_t at = sizeof(struct journal_header);
	struct tag tag = { 0 };
	int result = GO_ON;

	if (!is_sealed(journal, block))
		return LOG_ENDS;
	add_to_crc(walk, block);
	memcpy(journal->scratch, block, journal->place.block_size);
	while (result == GO_ON && !(tag.flags & TAG_LAST) &&
	       next_tag(journal, journal->scratch, &at, &tag))
		result = visit_copy[walk->pass](walk, &tag);
	return result;
}

/* ---- the walk ---- */

static int visit_revoke(struct walk *walk, const uint8_t *block)
{
	int error = 0;

	if (!is_sealed(walk->journal, block))
		return LOG_ENDS;
	if (walk->pass == REVOKE)
		error = journal_read_revokes(walk->journal, block, walk->sequence);
	return error ?: GO_ON;
}

/* SOLUTION S5 { */
static int visit_commit(struct walk *walk, const uint8_t *block)
{
	if (!commit_is_intact(walk, block))
		return LOG_ENDS;
	walk->sequence++;
	walk->crc = ~0u;
	return GO_ON;
}

static int visit_block(struct walk *walk)
{
	uint8_t *block;

	if (walk->pass != SCAN && walk->sequence == walk->end)
		return LOG_ENDS;
	int result = read_block(walk, &block);

	if (result != GO_ON)
		return result;
	if (word_at(block, 0) != JOURNAL_MAGIC ||
	    word_at(block, offsetof(struct journal_header, h_sequence)) != walk->sequence)
		return LOG_ENDS;
	switch (word_at(block, offsetof(struct journal_header, h_blocktype))) {
	case JOURNAL_DESCRIPTOR:
		return visit_descriptor(walk, block);
	case JOURNAL_REVOKE:
		return visit_revoke(walk, block);
	case JOURNAL_COMMIT:
		return visit_commit(walk, block);
	default:
		return LOG_ENDS;
	}
}
/* } SOLUTION S5 */

/* One pass. Copies in the buffer may have been changed by an earlier one, so it starts empty. */
static int walk_log(struct walk *walk, enum pass pass)
{
	struct journal *journal = walk->journal;
	int result;

	journal->buffered = 0;
	walk->pass = pass;
	walk->block = big32(journal->super->s_start);
	walk->sequence = big32(journal->super->s_sequence);
	walk->left = journal->end - journal->first;
	walk->crc = ~0u;
	do
		result = visit_block(walk);
	while (result == GO_ON);
	if (pass == SCAN)
		walk->end = walk->sequence;
	return result;
}

/* Fast commits continue the last transaction of the log; those of older ones are of no use. */
static int check_fast_commits(struct walk *walk)
{
	struct journal *journal = walk->journal;
	struct journal_fast_head head;
	uint8_t *block;

	if (!journal_has(journal, JOURNAL_INCOMPAT_FAST_COMMIT) ||
	    journal->end >= journal->place.blocks)
		return 0;
	int error = journal_read(journal, journal->end, &block);

	if (error)
		return error;
	memcpy(&head, block, sizeof(head));
	if (head.fc_tag != FAST_TAG_HEAD || head.fc_tid != walk->end)
		return 0;
	printk("%s: journal: it has fast commits that must be replayed: run e2fsck first\n",
	       journal->place.device->name);
	return -EOPNOTSUPP;
}

/* SOLUTION S5 { */
/* The blocks are in their places; from now on the log is empty. */
static int finish(struct journal *journal, uint32_t next)
{
	int error = journal_barrier(journal)
			?: journal_write_super(journal, 0, next)
			?: journal_barrier(journal);

	if (error)
		return error;
	journal->sequence = next;
	journal->needs_recovery = false;
	return 0;
}
/* } SOLUTION S5 */

/* The three passes, and the end. */
static int replay_log(struct walk *walk)
{
	struct journal *journal = walk->journal;
	int error = walk_log(walk, SCAN)
			?: check_fast_commits(walk)
			?: walk_log(walk, REVOKE)
			?: walk_log(walk, REPLAY);

	revoke_table_clear(&journal->revoked);
	journal->buffered = 0;
	return error ?: finish(journal, walk->end + 1);
}

int journal_recover(struct journal *journal, uint32_t *blocks)
{
	struct walk walk = { .journal = journal };
	int error = journal->needs_recovery ? replay_log(&walk) : 0;

	if (blocks)
		*blocks = walk.written;
	return error;
}
