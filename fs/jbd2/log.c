/*
 * The blocks of the log: where they are, and how they are read and written.
 *
 * The journal is a file, in runs of blocks that are next to each other on the disk (mkfs makes one,
 * or a few). They are asked for once, at the mount: later the cache may be full of held blocks, and
 * nothing could be read to find the log.
 *
 *	file	0 super | 1 ... 511		| 512 ... 1023
 *	disk	8193	| 8194 ... 8704		| 9001 ... 9512
 *
 * These are two runs: block 0 is 8193 on the disk, and block 512 is 9001.
 *
 * A run is written at a time: journal_add collects blocks in a buffer of 64 KiB, so 16 blocks are
 * one request. Reading works the same way, ahead. The buffer is for one of the two: recovery is
 * over before the first block is added, and after it the log is not read.
 *
 *	commit	descriptor, copy, copy, copy	in the buffer, one request at its end
 *		FLUSH
 *		commit block			in the buffer, a request of its own
 */
#include "fs/jbd2/internal.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/report/printk.h"
#include "mm/page_alloc.h"

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

bool journal_is_aborted(const struct journal *journal)
{
	return journal && journal->is_aborted;
}

/* ---- where they are ---- */

/* A file of one run is the usual case; the bound on runs is a bound on memory. */
int journal_find_runs(struct journal *journal)
{
	const struct journal_place *place = &journal->place;
	uint64_t next = 0;

	if (place->blocks == 0)
		return journal_corrupt(journal, "it is empty");
	for (uint32_t logical = 0; logical < place->blocks; logical++) {
		uint64_t physical = 0;
		int error = place->map(place->context, logical, &physical);

		if (error)
			return error;
		if (physical == 0 || !journal_on_device(journal, physical))
			return journal_corrupt(journal, "block %u is at %ju, outside the device",
					       logical, physical);
		if (logical == 0 || physical != next) {
			if (journal->run_count == JOURNAL_RUNS)
				return journal_corrupt(journal, "it has more than %u pieces",
						       JOURNAL_RUNS);
			journal->runs[journal->run_count++] =
			    (struct journal_run){ logical, physical };
		}
		next = physical + 1;
	}
	return 0;
}

bool journal_piece(const struct journal *journal, uint32_t index, uint64_t *first, uint32_t *count)
{
	const struct journal_run *run = &journal->runs[index];
	bool last = index + 1 == journal->run_count;

	if (index >= journal->run_count)
		return false;
	*first = run->physical;
	*count = (last ? journal->place.blocks : run[1].logical) - run->logical;
	return true;
}

/* Mostly there is one run, and so the search begins at the last. */
static uint64_t physical_of(const struct journal *journal, uint32_t logical)
{
	const struct journal_run *run = &journal->runs[journal->run_count - 1];

	while (run->logical > logical)
		run--;
	return run->physical + (logical - run->logical);
}

/* EXERCISE S5 (continued from commit.c): the block of the log after `block`. The log is the blocks
   [first, end) of the journal's file, used in a circle. */
/* SOLUTION S5 { */
uint32_t journal_after(const struct journal *journal, uint32_t block)
{
	return block + 1 == journal->end ? journal->first : block + 1;
}
/* } SOLUTION S5 */

/* ---- reading and writing ---- */

/* Whether `logical` is where the buffer's blocks go on, and the buffer has room for it. */
static bool buffer_continues(const struct journal *journal, uint32_t logical)
{
	uint32_t from = journal->buffered_from;

	return journal->buffered < journal->buffer_blocks && logical == from + journal->buffered &&
	       physical_of(journal, logical) == physical_of(journal, from) + journal->buffered;
}

static uint8_t *in_buffer(const struct journal *journal, uint32_t index)
{
	return journal->buffer + index * journal->place.block_size;
}

/* They are on their way then, and not yet safe: journal_barrier. */
int journal_write_out(struct journal *journal)
{
	uint32_t count = journal->buffered;

	journal->buffered = 0;
	if (count == 0)
		return 0;
	return block_write(journal->place.device,
			   physical_of(journal, journal->buffered_from) * journal_sectors(journal),
			   count * journal_sectors(journal), journal->buffer, BLOCK_OTHER);
}

int journal_add(struct journal *journal, uint32_t type, uint8_t **block)
{
	if (journal->free == 0) /* cannot be: journal_begin made room */
		return -ENOSPC;
	if (journal->buffered > 0 && !buffer_continues(journal, journal->head)) {
		int error = journal_write_out(journal);

		if (error)
			return error;
	}
	if (journal->buffered == 0)
		journal->buffered_from = journal->head;
	*block = in_buffer(journal, journal->buffered++);
	journal->head = journal_after(journal, journal->head);
	journal->free--;
	if (type != JOURNAL_COPY) {
		memset(*block, 0, journal->place.block_size);
		*(struct journal_header *)*block =
		    (struct journal_header){ big32(JOURNAL_MAGIC), big32(type),
					     big32(journal->sequence) };
	}
	return 0;
}

/* Fills the buffer from `logical` on, as far as one request goes. */
static int read_ahead(struct journal *journal, uint32_t logical)
{
	journal->buffered_from = logical;
	journal->buffered = 1;
	while (logical + journal->buffered < journal->end &&
	       buffer_continues(journal, logical + journal->buffered))
		journal->buffered++;
	int error = block_read(
	    journal->place.device, physical_of(journal, logical) * journal_sectors(journal),
	    journal->buffered * journal_sectors(journal), journal->buffer, BLOCK_OTHER);

	if (error)
		journal->buffered = 0;
	return error;
}

int journal_read(struct journal *journal, uint32_t logical, uint8_t **block)
{
	if (logical - journal->buffered_from >= journal->buffered) {
		int error = read_ahead(journal, logical);

		if (error)
			return error;
	}
	*block = in_buffer(journal, logical - journal->buffered_from);
	return 0;
}

/* Without barriers (the option barrier=0) a drive with a cache may lose what was committed. */
int journal_barrier(struct journal *journal)
{
	return journal->place.no_barriers ? 0 : block_flush(journal->place.device);
}

/* All that changes is in its first sector, so a power cut leaves the old superblock or the new one.
 */
int journal_write_super(struct journal *journal, uint32_t start, uint32_t sequence)
{
	struct journal_super *super = journal->super;

	super->s_start = big32(start);
	super->s_sequence = big32(sequence);
	super->s_checksum = journal->has_checksums ? big32(journal_super_checksum(super)) : 0;
	journal->is_marked = start != 0;
	return block_write(journal->place.device,
			   physical_of(journal, 0) * journal_sectors(journal),
			   journal_sectors(journal), super, BLOCK_OTHER);
}

/* ---- checksums ---- */

uint32_t journal_super_checksum(const struct journal_super *super)
{
	const size_t field = offsetof(struct journal_super, s_checksum);

	return crc32c_without(~0u, super, sizeof(*super), field, sizeof(super->s_checksum));
}

uint32_t journal_block_checksum(const struct journal *journal, const uint8_t *block, uint32_t field)
{
	return crc32c_without(journal->seed, block, journal->place.block_size, field,
			      sizeof(uint32_t));
}

void journal_seal(const struct journal *journal, uint8_t *block, uint32_t field)
{
	if (journal->has_checksums)
		*(uint32_t *)(block + field) = big32(journal_block_checksum(journal, block, field));
}

uint32_t journal_copy_checksum(const struct journal *journal, uint32_t first_word,
			       const uint8_t *data, uint32_t sequence)
{
	uint32_t words[] = { big32(sequence), first_word };
	uint32_t crc = crc32c(journal->seed, words, sizeof(words));

	return crc32c(crc, data + sizeof(first_word),
		      journal->place.block_size - sizeof(first_word));
}

/* A tag of version 2 has two bytes more than its fields: a slip of 2012 that became the format. */
void journal_use_features(struct journal *journal)
{
	bool version_2 = journal_has(journal, JOURNAL_INCOMPAT_CSUM_V2);
	bool version_3 = journal_has(journal, JOURNAL_INCOMPAT_CSUM_V3);

	journal->tag_size = 8;
	if (journal_has(journal, JOURNAL_INCOMPAT_64BIT))
		journal->tag_size += 4;
	if (version_2)
		journal->tag_size += 2;
	if (version_3)
		journal->tag_size = JOURNAL_TAG_WORDS * sizeof(uint32_t);
	journal->has_checksums = version_2 || version_3;
	journal->seed = crc32c(~0u, journal->super->s_uuid, JOURNAL_UUID_SIZE);
}

/* A driver that does not know revoke blocks, for instance, must not replay what this one writes. */
void journal_prepare(struct journal *journal)
{
	struct journal_super *super = journal->super;
	uint32_t features = big32(super->s_feature_incompat) | JOURNAL_INCOMPAT_REVOKE;

	if (journal->place.wide)
		features |= JOURNAL_INCOMPAT_64BIT;
	if (journal->place.checksums && !(features & JOURNAL_INCOMPAT_CSUM_V2)) {
		features |= JOURNAL_INCOMPAT_CSUM_V3;
		super->s_checksum_type = JOURNAL_CRC32C;
		super->s_feature_compat &= ~big32(JOURNAL_COMPAT_CHECKSUM);
	}
	super->s_feature_incompat = big32(features);
	journal_use_features(journal);
	journal->is_prepared = true;
}
