/*
 * Revoked blocks: those of which older copies in the log must not be replayed.
 *
 *	transaction 17	directory block 500 is changed: there is a copy of it in the log
 *	transaction 18	the directory is removed, block 500 is freed, and revoked
 *	then		a file gets block 500, and its data is written there, without the journal
 *	power cut	recovery replays 17 and 18: the copy of 500 would destroy the file's data
 *
 * A revoke record of transaction 18 says: no copy of block 500 in transactions up to 18 is to be
 * replayed. One in 19 is newer, and is. A block that becomes metadata again in transaction 18
 * itself must lose its record: its copy there is wanted.
 *
 * The table has the records of the open transaction, and during recovery those of the whole log. It
 * has a chain of records for each hash, and grows: a log may have millions of them.
 */
#include "fs/jbd2/internal.h"

#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"
#include "mm/pool.h"

#define ORDER_MAX 8u
#define CHAIN	  4u /* records, before there are twice as many chains */

static struct pool records = POOL_INITIALIZER(struct revoked);

/* A power of two. */
static uint32_t bucket_count(const struct revoke_table *table)
{
	return (PAGE_SIZE << table->order) / sizeof(*table->buckets);
}

int revoke_table_open(struct revoke_table *table, unsigned order)
{
	*table = (struct revoke_table){ .buckets = page_alloc(order), .order = order };
	if (!table->buckets)
		return -ENOMEM;
	memset(table->buckets, 0, PAGE_SIZE << order);
	return 0;
}

void revoke_table_clear(struct revoke_table *table)
{
	for (uint32_t i = 0; i < bucket_count(table) && table->count > 0; i++) {
		struct revoked *record;

		while ((record = table->buckets[i])) {
			table->buckets[i] = record->next;
			pool_free(&records, record);
			table->count--;
		}
	}
}

void revoke_table_close(struct revoke_table *table)
{
	if (!table->buckets)
		return;
	revoke_table_clear(table);
	page_free(table->buckets, table->order);
}

/* The link that leads to the block's record, or to the end of its chain. */
static struct revoked **find_record(const struct revoke_table *table, uint64_t block)
{
	uint32_t hash = (uint32_t)block ^ (uint32_t)(block >> 32);
	struct revoked **link = &table->buckets[hash % bucket_count(table)];

	while (*link && (*link)->block != block)
		link = &(*link)->next;
	return link;
}

/* Transactions are numbered modulo 2^32, so only their differences count. */
static bool sequence_is_before(uint32_t left, uint32_t right)
{
	return (int32_t)(left - right) < 0;
}

/* Without memory the chains become longer instead. */
static void grow_table(struct revoke_table *table)
{
	struct revoke_table larger;

	if (table->order == ORDER_MAX || revoke_table_open(&larger, table->order + 1) != 0)
		return;
	for (uint32_t i = 0; i < bucket_count(table); i++)
		for (struct revoked *record = table->buckets[i], *next; record; record = next) {
			next = record->next;
			record->next = NULL;
			*find_record(&larger, record->block) = record;
		}
	larger.count = table->count;
	page_free(table->buckets, table->order);
	*table = larger;
}

/* One record for a block, with its latest transaction: earlier ones say nothing more. */
int revoke_add(struct revoke_table *table, uint64_t block, uint32_t sequence)
{
	if (table->count / CHAIN >= bucket_count(table))
		grow_table(table);
	struct revoked **link = find_record(table, block);
	struct revoked *record = *link;

	if (!record) {
		record = pool_alloc(&records);
		if (!record)
			return -ENOMEM;
		*record = (struct revoked){ .block = block, .sequence = sequence };
		*link = record;
		table->count++;
	}
	if (sequence_is_before(record->sequence, sequence))
		record->sequence = sequence;
	return 0;
}

void revoke_remove(struct revoke_table *table, uint64_t block)
{
	struct revoked **link = find_record(table, block), *record = *link;

	if (!record)
		return;
	*link = record->next;
	pool_free(&records, record);
	table->count--;
}

/* EXERCISE S5 (continued from commit.c): whether a copy of the block in transaction `sequence` must
   not be replayed. The table knows for each block the latest transaction that revokes it; the
   opening of this file says which copies that concerns. Numbers of transactions wrap:
   sequence_is_before. */
/* SOLUTION S5 { */
bool revoke_covers(const struct revoke_table *table, uint64_t block, uint32_t sequence)
{
	const struct revoked *record = *find_record(table, block);

	return record && !sequence_is_before(record->sequence, sequence);
}
/* } SOLUTION S5 */

/* ---- revoke blocks ---- */

static uint32_t number_size(const struct journal *journal)
{
	return journal_has(journal, JOURNAL_INCOMPAT_64BIT) ? 8 : 4;
}

uint32_t journal_revokes_per_block(const struct journal *journal)
{
	uint32_t room = journal_usable(journal) - sizeof(struct journal_revoke_header);

	return room / number_size(journal);
}

/* Big-endian, from a place that may be at any address. */
static uint64_t get_number(const uint8_t *at, uint32_t size)
{
	uint64_t number = 0;

	for (uint32_t i = 0; i < size; i++)
		number = number << 8 | at[i];
	return number;
}

static void put_number(uint8_t *at, uint32_t size, uint64_t number)
{
	for (uint32_t i = size; i > 0; i--, number >>= 8)
		at[i - 1] = (uint8_t)number;
}

/* The block is full, or nothing is left. It is still in the buffer. */
static void end_block(struct journal *journal, uint8_t *block, uint32_t used)
{
	((struct journal_revoke_header *)block)->r_count = big32(used);
	journal_seal(journal, block, journal_usable(journal));
}

/* In the order of the table: recovery takes them all before it replays anything. */
int journal_add_revokes(struct journal *journal)
{
	const uint32_t size = number_size(journal), begin = sizeof(struct journal_revoke_header);
	const uint32_t full = begin + journal_revokes_per_block(journal) * size;
	uint32_t used = full;
	uint8_t *block = NULL;

	for (uint32_t i = 0; i < bucket_count(&journal->revoked) && journal->revoked.count > 0; i++)
		for (struct revoked *record = journal->revoked.buckets[i]; record;
		     record = record->next) {
			if (used == full) {
				if (block)
					end_block(journal, block, used);
				int error = journal_add(journal, JOURNAL_REVOKE, &block);

				if (error)
					return error;
				used = begin;
			}
			put_number(block + used, size, record->block);
			used += size;
		}
	if (block)
		end_block(journal, block, used);
	return 0;
}

/* The count comes from the disk, and is checked before the numbers are read. */
int journal_read_revokes(struct journal *journal, const uint8_t *block, uint32_t sequence)
{
	const struct journal_revoke_header *header = (const void *)block;
	const uint32_t size = number_size(journal);
	uint32_t end = big32(header->r_count);
	int error = 0;

	if (end < sizeof(*header) || end > journal_usable(journal))
		return journal_corrupt(journal, "revoke block of transaction %u: %u bytes in use",
				       sequence, end);
	for (uint32_t at = sizeof(*header); at + size <= end && !error; at += size)
		error = revoke_add(&journal->revoked, get_number(block + at, size), sequence);
	return error;
}
