/*
 * Power cuts: what the disk may hold afterwards, and whether recovery makes the right thing of it.
 *
 *	write 1, write 2, FLUSH, write 3, write 4, write 5 <- cut
 *	----- certain --------- ------- any of them -----
 */
#include <stdlib.h>
#include <string.h>

#include "fs/jbd2/disk.h"
#include "kernel/lib/errno.h"
#include "tests/host/jbd2/session.h"

#define SUBSETS	 2
#define DAMAGES	 40
#define REQUESTS 20000 /* of one recovery at most */

static uint8_t *certain, *state; /* what is flushed; and the disk after one of the cuts */
static const char *how;		 /* the kind of cut that is tried */
static size_t cut;		 /* entries of the record before it */
static uint64_t seed_of_session;

static void apply(uint8_t *image, const struct disk_record *record, size_t entry, uint64_t sectors)
{
	const struct disk_entry *write = &record->entries[entry];

	for (uint32_t i = 0; i < write->sectors; i++)
		if (sectors >> (i % 64) & 1)
			memcpy(image + (write->lba + i) * SECTOR_SIZE,
			       record->bytes + write->data + (size_t)i * SECTOR_SIZE, SECTOR_SIZE);
}

/* ---- the judge ---- */

static void wrong(const struct session *session, const char *what, uint32_t number)
{
	fail("session %ju, %s at write %zu of %zu: %s (%u); blocks of %u, log of %u, features %x",
	     seed_of_session, how, cut, disk.record.count, what, number, session->layout.block_size,
	     session->layout.log_blocks, session->layout.incompat);
}

/* Recovers the state, in place. A second recovery must find nothing to do. */
static void recover(struct session *session)
{
	struct journal_place place = place_of(session);
	struct journal *journal;

	disk.bytes = state;
	for (int round = 0; round < 2; round++) {
		uint32_t written;

		if (journal_open(&place, &journal) != 0)
			wrong(session, "the journal cannot be opened", 0);
		if (journal_recover(journal, &written) != 0)
			wrong(session, "the journal cannot be recovered", 0);
		if (round > 0 && written > 0)
			wrong(session, "a second recovery writes blocks", written);
		if (journal_close(journal) != 0)
			wrong(session, "the journal cannot be closed", 0);
	}
}

static bool holds(const struct session *session, uint32_t block, uint32_t number)
{
	static uint8_t contents[4096];
	uint32_t size = session->layout.block_size;

	fill_contents(contents, size, number);
	return memcmp(state + (size_t)block * size, contents, size) == 0;
}

/* How many calls have survived, by block 0. */
static uint32_t find_calls(const struct session *session)
{
	uint32_t calls = session->calls;

	while (!holds(session, 0, session->states[calls][0].number))
		if (calls-- == 0)
			wrong(session, "block 0 has no contents of its own", 0);
	return calls;
}

/* The last data that a free block was given; NULL if there is none, or it may be on its way. */
static const struct data_write *data_of(const struct session *session, uint32_t block,
					uint32_t since, size_t flushed)
{
	const struct data_write *last = NULL;

	for (uint32_t i = 0; i < session->data_count; i++) {
		const struct data_write *write = &session->data[i];

		if (write->block != block || write->entry > cut || write->call < since)
			continue;
		if (write->entry > flushed)
			return NULL;
		last = write;
	}
	return last;
}

/* Metadata must be that of a prefix of the calls, and data that was flushed must be there. */
static void check_blocks(const struct session *session, uint32_t calls, size_t flushed)
{
	for (uint32_t block = 0; block < BLOCKS; block++) {
		const struct block_state *is = &session->states[calls][block];
		const struct data_write *data;

		if (is->kind == METADATA && !holds(session, block, is->number))
			wrong(session, "metadata is not that of the calls which survived", block);
		data = is->kind == FREE ? data_of(session, block, is->since, flushed) : NULL;
		if (data != NULL && !holds(session, block, data->number))
			wrong(session, "data was overwritten", block);
	}
}

static uint32_t judge(struct session *session, size_t flushed)
{
	recover(session);

	uint32_t calls = find_calls(session);

	if (calls < promised_at(session, cut))
		wrong(session, "committed calls are lost, what is left is", calls);
	check_blocks(session, calls, flushed);
	return calls;
}

/* ---- the cuts ---- */

/* The disk after a cut: of the writes since the flush each is there, or (lose) perhaps not; the
 * last one may be torn. */
static void make_state(struct session *session, size_t flushed, bool lose, bool tear)
{
	memcpy(state, certain, session->size);
	for (size_t entry = flushed; entry < cut; entry++) {
		uint64_t sectors = ~0ull;

		if (lose && random_below(&session->random, 2))
			sectors = 0;
		if (tear && entry + 1 == cut)
			sectors = random_next(&session->random);
		apply(state, &disk.record, entry, sectors);
	}
}

/* What is known of the disk becomes the beginning of the next session. */
static void continue_with(struct session *session, uint32_t calls, size_t flushed,
			  const uint8_t *crashed)
{
	uint32_t kept = 0;

	for (uint32_t block = 0; block < BLOCKS; block++) {
		struct block_state *is = &session->states[0][block];
		const struct data_write *data;

		*is = session->states[calls][block];
		data = is->kind == FREE ? data_of(session, block, is->since, flushed) : NULL;
		is->since = 0;
		if (data != NULL)
			session->kept[kept++] = (struct data_write){ 0, block, data->number, 0 };
	}
	memcpy(session->data, session->kept, kept * sizeof(session->kept[0]));
	session->data_count = kept;
	session->calls = session->promise_count = 0;
	memcpy(session->base, crashed, session->size);
}

/* ---- damage ---- */

/* Opens and recovers a disk of which anything may be wrong. */
static int use_damaged(struct session *session)
{
	struct journal_place place = place_of(session);
	struct journal *journal;
	int error = journal_open(&place, &journal);

	if (error)
		return error;
	error = journal_recover(journal, NULL);
	journal_close(journal);
	return error;
}

/* A few bytes of the log's blocks from `first` on, or what looks like one of its blocks. */
static void damage(struct session *session, uint32_t first)
{
	static const uint32_t words[] = { 0, ~0u, 1, 0x98, 0x98393bc0u, 0x80000000u };
	const struct layout *layout = &session->layout;
	uint32_t logical =
	    first + (uint32_t)random_below(&session->random, layout->log_blocks - first);
	uint8_t *block = state + log_block(session, logical) * layout->block_size;
	uint64_t most = random_below(&session->random, 2) ? layout->block_size / 4 : 24;
	uint64_t at = 4 * random_below(&session->random, most);
	uint32_t word = words[random_below(&session->random, 6)];

	switch (random_below(&session->random, 3)) {
	case 0:
		block[at] ^= (uint8_t)(1u << random_below(&session->random, 8));
		break;
	case 1:
		memcpy(block + at, &word, sizeof(word));
		break;
	default:
		word = big32((uint32_t)random_below(&session->random, layout->log_blocks));
		memcpy(block + at, &word, sizeof(word));
	}
}

static void check_damaged(int error)
{
	if (error != 0 && error != -EUCLEAN && error != -EOPNOTSUPP)
		fail("a damaged journal gives error %d", -error);
}

uint32_t try_damage(struct session *session, uint64_t seed)
{
	seed_of_session = seed;
	how = "damage";
	state = malloc(session->size);
	disk.bytes = state;
	for (uint32_t i = 0; i < DAMAGES; i++) {
		memcpy(state, session->base, session->size);
		for (uint64_t n = 1 + random_below(&session->random, 6); n > 0; n--)
			damage(session, (uint32_t)random_below(&session->random, 2));
		if (random_below(&session->random, 2))
			seal_super(session, state);
		disk.budget = REQUESTS;
		check_damaged(use_damaged(session));
	}
	disk.budget = UINT64_MAX;
	free(state);
	disk.bytes = NULL;
	return DAMAGES;
}

uint32_t try_cuts(struct session *session, uint64_t seed)
{
	const size_t entries = disk.record.count;
	const size_t chosen = random_below(&session->random, entries + 1);
	uint8_t *crashed = malloc(session->size);
	uint32_t tried = 0, calls = 0;
	size_t flushed = 0, flushed_then = 0;

	seed_of_session = seed;
	certain = malloc(session->size);
	state = malloc(session->size);
	memcpy(certain, session->base, session->size);
	for (cut = 0; cut <= entries; cut++) {
		if (cut > 0 && disk.record.entries[cut - 1].sectors == 0)
			for (; flushed < cut; flushed++)
				apply(certain, &disk.record, flushed, ~0ull);
		for (int kind = 0; kind < 2 + SUBSETS; kind++, tried++) {
			how = kind == 0 ? "prefix" : kind == 1 ? "torn write" : "subset";
			make_state(session, flushed, kind > 0 && kind != 1, kind == 1 || kind == 3);
			if (cut == chosen && kind == 2)
				memcpy(crashed, state, session->size);

			uint32_t survived = judge(session, flushed);

			if (cut == chosen && kind == 2) {
				calls = survived;
				flushed_then = flushed;
			}
		}
	}
	cut = chosen;
	continue_with(session, calls, flushed_then, crashed);
	free(certain);
	free(state);
	free(crashed);
	disk.bytes = NULL;
	return tried;
}
