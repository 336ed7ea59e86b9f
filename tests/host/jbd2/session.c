/* See session.h. */
#include "tests/host/jbd2/session.h"

#include <stdlib.h>
#include <string.h>

#include "fs/jbd2/disk.h"
#include "fs/jbd2/checksum.h"
#include "kernel/lib/errno.h"

#define ENTRIES_MAX 700u

static uint32_t last_number;   /* of contents that were made */
static uint32_t last_sequence; /* the newest transaction, for contents that look like its blocks */

/* Some contents begin with the journal's magic, and look like a descriptor or a commit block of a
 * transaction that comes when the log has gone round: then the end of the log may be there. */
void fill_contents(uint8_t *block, uint32_t size, uint32_t number)
{
	static const uint32_t types[] = {
		0, 0, 0, 0, JOURNAL_DESCRIPTOR, JOURNAL_COMMIT, JOURNAL_COMMIT, JOURNAL_COMMIT
	};
	struct journal_header header = { big32(JOURNAL_MAGIC), big32(types[number % 8]),
					 big32(number >> 24) };
	struct random random = { number };

	for (uint32_t at = 0; at < size; at += 8) {
		uint64_t word = random_next(&random);

		memcpy(block + at, &word, 8);
	}
	if (number % 8 >= 3)
		memcpy(block, &header, sizeof(header));
}

/* Its upper byte is a transaction in the near future. */
static uint32_t new_number(struct session *session)
{
	uint32_t near = last_sequence + (uint32_t)random_below(&session->random, 16);

	return (near & 0xff) << 24 | (++last_number & 0xffffff);
}

/* ---- the disk ---- */

uint64_t log_block(const struct session *session, uint32_t logical)
{
	return BLOCKS + logical + (session->layout.fragmented ? logical / 7 : 0);
}

static int map(void *context, uint32_t logical, uint64_t *physical)
{
	*physical = log_block(context, logical);
	return 0;
}

struct journal_place place_of(struct session *session)
{
	return (struct journal_place){
		.device = &disk.device,
		.block_size = session->layout.block_size,
		.blocks = session->layout.log_blocks,
		.map = map,
		.context = session,
		.now = clock_count,
		.wide = session->layout.wide,
		.checksums = session->layout.checksums,
	};
}

static struct journal_super *super_of(const struct session *session, uint8_t *image)
{
	return (void *)(image + log_block(session, 0) * session->layout.block_size);
}

void seal_super(const struct session *session, uint8_t *image)
{
	struct journal_super *super = super_of(session, image);

	super->s_checksum = 0;
	super->s_checksum = big32(crc32c(~0u, super, sizeof(*super)));
}

static void make_super(const struct session *session)
{
	const struct layout *layout = &session->layout;
	struct journal_super *super = super_of(session, session->base);

	super->header = (struct journal_header){ big32(JOURNAL_MAGIC), big32(JOURNAL_SUPER_2), 0 };
	super->s_blocksize = big32(layout->block_size);
	super->s_maxlen = big32(layout->log_blocks);
	super->s_first = big32(1);
	super->s_sequence = big32(1);
	super->s_nr_users = big32(1);
	super->s_feature_incompat = big32(layout->incompat);
	super->s_feature_compat = big32(layout->compat);
	super->s_checksum_type = JOURNAL_CRC32C;
	memset(super->s_uuid, 0x5a, sizeof(super->s_uuid));
	seal_super(session, session->base);
}

static void choose_layout(struct session *session)
{
	static const uint32_t features[] = {
		0,
		JOURNAL_INCOMPAT_REVOKE | JOURNAL_INCOMPAT_64BIT,
		JOURNAL_INCOMPAT_CSUM_V2,
		JOURNAL_INCOMPAT_CSUM_V2 | JOURNAL_INCOMPAT_64BIT,
		JOURNAL_INCOMPAT_CSUM_V3,
		JOURNAL_INCOMPAT_CSUM_V3 | JOURNAL_INCOMPAT_64BIT,
	};
	struct layout *layout = &session->layout;

	layout->block_size = 1024u << random_below(&session->random, 3);
	layout->log_blocks = 34 + (uint32_t)random_below(&session->random, LOG_MAX - 34);
	layout->incompat = features[random_below(&session->random, 6)];
	layout->compat = layout->incompat == 0 && random_below(&session->random, 2);
	layout->wide = random_below(&session->random, 2);
	layout->checksums = random_below(&session->random, 2);
	layout->fragmented = random_below(&session->random, 2);
}

void session_create(struct session *session, uint64_t seed)
{
	memset(session, 0, sizeof(*session));
	session->random.state = seed;
	choose_layout(session);
	session->size = (size_t)(BLOCKS + 2 * LOG_MAX) * session->layout.block_size;
	session->base = calloc(1, session->size);
	make_super(session);
	for (uint32_t block = 0; block < BLOCKS; block++) {
		session->states[0][block] = (struct block_state){ METADATA, ++last_number, 0 };
		fill_contents(session->base + block * session->layout.block_size,
			      session->layout.block_size, last_number);
	}
}

/* ---- calls ---- */

static void note_promise(struct session *session)
{
	session->promises[session->promise_count] = session->calls;
	session->promise_entries[session->promise_count++] = disk.record.count;
}

uint32_t promised_at(const struct session *session, size_t entries)
{
	uint32_t promised = 0;

	for (uint32_t i = 0; i < session->promise_count; i++)
		if (session->promise_entries[i] <= entries)
			promised = session->promises[i];
	return promised;
}

/* The blocks that are free now were freed by calls that are committed, but for those of a call that
 * is not over: begin and extend commit before it frees any. */
static void when_committed(void *context)
{
	struct session *session = context;

	for (uint32_t block = 0; block < BLOCKS; block++)
		session->may_take[block] = session->states[session->calls][block].kind == FREE;
}

/* Puts new contents into a block, as part of the transaction. */
static int change(struct session *session, struct block_state *state, uint32_t block)
{
	uint32_t size = session->layout.block_size;
	struct cached_block *buffer;
	int error = state->kind == FREE
			? bcache_get_zeroed(&disk.device, block, size, &buffer)
			: bcache_get(&disk.device, block, size, BLOCK_OTHER, &buffer);

	if (error)
		return error;
	error = journal_change(session->journal, buffer);
	if (!error) {
		last_sequence = journal_open_number(session->journal);
		*state = (struct block_state){ METADATA, new_number(session), 0 };
		fill_contents(buffer->data, size, state->number);
		session->may_take[block] = false;
	}
	bcache_put(buffer);
	return error;
}

/* One of the things that a call does to a block. A block that it has freed itself it may take
 * again, and so may another call of the same transaction. */
static int use_block(struct session *session, struct block_state *states, uint32_t block)
{
	struct block_state *state = &states[block];
	uint64_t dice = random_below(&session->random, 8);

	if (state->kind == METADATA && dice < 2) {
		*state = (struct block_state){ FREE, 0, session->calls + 1 };
		return journal_revoke(session->journal, block, 1);
	}
	if (state->kind == FREE && dice < 4)
		return 0;
	return change(session, state, block);
}

/* Changes up to `count` blocks, and block 0, which counts: then the call could end here. */
static int do_part(struct session *session, uint32_t count)
{
	struct block_state *states = session->states[session->calls + 1];
	int error = 0;

	memcpy(states, session->states[session->calls], sizeof(session->states[0]));
	for (uint32_t i = 0; i < count && !error; i++)
		error = use_block(session, states,
				  1 + (uint32_t)random_below(&session->random, BLOCKS - 1));
	if (!error)
		error = change(session, &states[0], 0);
	if (!error)
		session->calls++;
	return error;
}

/* One call; sometimes a long one, that lets itself be cut in two. */
static int call(struct session *session)
{
	uint32_t count = 1 + (uint32_t)random_below(&session->random, 6);
	int error = journal_begin(session->journal, count + 1);

	if (error)
		return error;
	error = do_part(session, count);
	if (!error && random_below(&session->random, 5) == 0) {
		error = journal_extend(session->journal, count + 1);
		if (!error)
			error = do_part(session, count);
	}
	journal_end(session->journal);
	return error;
}

/* Data goes into blocks whose freeing is committed, as a file system would do. */
static int write_data(struct session *session)
{
	static uint8_t contents[4096];
	uint32_t size = session->layout.block_size, sectors = size / SECTOR_SIZE;
	uint32_t block = (uint32_t)random_below(&session->random, BLOCKS);
	struct data_write *write = &session->data[session->data_count];
	int error;

	if (!session->may_take[block] || session->data_count == DATA_MAX)
		return 0;
	*write = (struct data_write){ disk.record.count + 1, block, new_number(session),
				      session->calls };
	fill_contents(contents, size, write->number);
	error = block_write(&disk.device, (uint64_t)block * sectors, sectors, contents, BLOCK_DATA);
	session->data_count += error == 0;
	return error;
}

/* Reading what is not changed makes the cache give up what is. */
static int look_at(struct session *session)
{
	uint32_t block = (uint32_t)random_below(&session->random, BLOCKS);
	struct cached_block *buffer;
	int error = 0;

	if (session->states[session->calls][block].kind == METADATA) {
		error = bcache_get(&disk.device, block, session->layout.block_size, BLOCK_OTHER,
				   &buffer);
		if (!error)
			bcache_put(buffer);
	}
	return error;
}

static int step(struct session *session)
{
	int error = call(session);

	for (int i = 0; i < 4 && !error; i++)
		error = write_data(session);
	for (int i = 0; i < 8 && !error; i++)
		error = look_at(session);
	if (!error && random_below(&session->random, 3) == 0) {
		error = journal_commit(session->journal);
		if (!error)
			note_promise(session);
	}
	return error;
}

/* ---- the session ---- */

static void open_journal(struct session *session)
{
	struct journal_place place = place_of(session);
	int error = journal_open(&place, &session->journal);

	if (!error && journal_needs_recovery(session->journal))
		error = journal_recover(session->journal, NULL);
	if (error)
		fail("the journal cannot be opened: error %d", -error);
	journal_on_commit(session->journal, when_committed, session);
	when_committed(session);
}

/* Once a commit has failed, nothing is written any more. */
static void check_abort(struct session *session)
{
	size_t written = disk.record.count;

	disk.fail_count = 0;
	if (journal_begin(session->journal, 1) != -EROFS ||
	    journal_commit(session->journal) != -EROFS || disk.record.count != written)
		fail("the journal goes on after an error");
}

/* All that is in memory is lost. */
static void lose_memory(struct session *session)
{
	disk.recording = false;
	disk.fail_from = disk.requests;
	disk.fail_count = UINT64_MAX;
	journal_close(session->journal);
	disk.fail_count = 0;
	bcache_forget(&disk.device, 0, BLOCKS, session->layout.block_size);
}

void session_run(struct session *session)
{
	bool closes = random_below(&session->random, 3) == 0;
	bool fails = random_below(&session->random, 3) == 0;
	uint32_t most = 20 + (uint32_t)random_below(&session->random, CALLS_MAX - 30);
	int error = 0;

	disk.bytes = malloc(session->size);
	memcpy(disk.bytes, session->base, session->size);
	disk.record.count = disk.record.used = 0;
	disk.recording = true;
	open_journal(session);
	if (fails) {
		disk.fail_from = disk.requests + random_below(&session->random, 400);
		disk.fail_count = 1 + random_below(&session->random, 3);
	}
	while (!error && session->calls < most && disk.record.count < ENTRIES_MAX)
		error = step(session);
	if (error && (!fails || (error != -EIO && error != -EROFS)))
		fail("a call gives error %d", -error);
	if (error == -EROFS)
		check_abort(session);
	if (!error && closes && !fails) {
		error = journal_close(session->journal);
		note_promise(session);
		if (error)
			fail("close gives error %d", -error);
		open_journal(session);
	}
	lose_memory(session);
	free(disk.bytes);
	disk.bytes = NULL;
}
