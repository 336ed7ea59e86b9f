/*
 * Random transactions over the blocks of a small disk, and a model of what they make of it.
 *
 * The disk has BLOCKS blocks of a "file system", and a journal. A call changes some of the blocks,
 * frees some (they are revoked) and takes free ones again; block 0 always gets a new number, by
 * which one sees later how many calls have survived. Freed blocks get "data" that goes past the
 * journal, once their transaction is committed. All of it is recorded, write by write.
 */
#pragma once

#include "fs/jbd2/journal.h"
#include "kernel/lib/random.h"
#include "tests/host/ext/shim.h"

#define BLOCKS	  48u
#define CALLS_MAX 240u
#define LOG_MAX	  96u /* blocks of a journal's file */
#define BUFFERS	  24u /* of the cache: fewer than blocks, so that dirty ones are written early */
#define DATA_MAX  512u

enum kind {
	METADATA, /* has the contents of its number */
	FREE,	  /* may have data: struct data_write */
};

struct block_state {
	enum kind kind;
	uint32_t number; /* of its contents */
	uint32_t since;	 /* FREE: the call that freed it */
};

/* A block of data that went past the journal. */
struct data_write {
	size_t entry; /* the entries of the record up to it; 0: it was there at the beginning */
	uint32_t block, number;
	uint32_t call; /* calls that had ended */
};

/* How the disk looks. */
struct layout {
	uint32_t block_size, log_blocks, incompat, compat;
	bool wide, checksums, fragmented;
};

struct session {
	struct layout layout;
	struct random random;
	uint8_t *base;					  /* the disk at the beginning */
	size_t size;					  /* bytes of it */
	uint32_t calls;					  /* that ended */
	struct block_state states[CALLS_MAX + 1][BLOCKS]; /* after this many calls */
	uint32_t promises[CALLS_MAX + 1];		  /* of promise_entries */
	size_t promise_entries[CALLS_MAX + 1];
	uint32_t promise_count;
	struct data_write data[DATA_MAX], kept[BLOCKS];
	uint32_t data_count;
	bool may_take[BLOCKS]; /* free, and the transaction that freed it is committed */
	struct journal *journal;
};

/* The contents with this number. */
void fill_contents(uint8_t *block, uint32_t size, uint32_t number);

/* Where the journal is, for journal_open. */
struct journal_place place_of(struct session *session);

/* The block of the disk that is this one of the journal. */
uint64_t log_block(const struct session *session, uint32_t logical);

/* Puts the right checksum into the journal's superblock in an image. */
void seal_super(const struct session *session, uint8_t *image);

/* Makes an empty disk and the layout, from the seed. */
void session_create(struct session *session, uint64_t seed);

/* Recovers the disk and works on it, until the record is long enough, an error was injected, or
 * the journal was closed. Afterwards the cache is empty, as after a power cut. */
void session_run(struct session *session);

/* How many calls must have survived when the first `entries` writes and flushes were made. */
uint32_t promised_at(const struct session *session, size_t entries);

/* ---- cuts.c ---- */

/* Tries cuts after each write of the session: the whole prefix, random subsets of what was not
 * flushed, torn sectors. Ends the program at the first wrong one. Returns how many it tried. The
 * session continues with one of the states. */
uint32_t try_cuts(struct session *session, uint64_t seed);

/* Recovers the disk with which the session continues, with random damage in its journal: an error,
 * perhaps, but nothing worse. Returns how often. */
uint32_t try_damage(struct session *session, uint64_t seed);
