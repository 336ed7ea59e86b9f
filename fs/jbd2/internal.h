/* Shared by the files of the journal. */
#pragma once

#include "fs/jbd2/checksum.h"
#include "fs/jbd2/disk.h"
#include "fs/jbd2/journal.h"

/* Blocks of the file `logical` and after it, up to the next run, are at `physical` and after it. */
struct journal_run {
	uint32_t logical;
	uint64_t physical;
};

/* Revoked blocks, by number (fs/jbd2/revoke.c). */
struct revoked {
	struct revoked *next;
	uint64_t block;
	uint32_t sequence; /* of the latest transaction that revokes it */
};

struct revoke_table {
	struct revoked **buckets; /* 2^order pages */
	unsigned order;
	uint32_t count;
};

/* Its memory is 2^JOURNAL_ORDER pages: itself, the superblock, the scratch page, and the runs. */
#define JOURNAL_ORDER 3
#define JOURNAL_RUNS  (5 * PAGE_SIZE / (unsigned)sizeof(struct journal_run))

struct journal {
	struct journal_place place;
	struct journal_super *super; /* block 0 of the file */
	uint8_t *scratch;	     /* for one block */
	struct journal_run *runs;    /* up to JOURNAL_RUNS */
	uint32_t run_count;
	uint32_t tag_size;  /* bytes on the disk, without a UUID */
	uint32_t seed;	    /* of checksums */
	bool has_checksums; /* of version 2 or 3 */

	/* The log: blocks [first, end) of the file, used in a circle. */
	uint32_t first, end;
	uint32_t head; /* the next block to write */
	uint32_t free; /* blocks from head on that hold nothing that recovery needs */

	/* Blocks of the log that are next to each other on the disk go through a buffer: on their
	 * way to the disk (they end before head), or read ahead. */
	uint8_t *buffer;
	unsigned buffer_order;
	uint32_t buffer_blocks; /* room */
	uint32_t buffered;
	uint32_t buffered_from; /* block of the file */

	/* The open transaction. */
	uint32_t sequence;
	struct list held; /* of cached blocks */
	uint32_t changed; /* blocks in held */
	struct revoke_table revoked;
	unsigned depth; /* of begin and end */

	bool needs_recovery;
	bool is_prepared; /* has the features with which this driver writes */
	bool is_marked;	  /* the superblock on the disk says that there is a log */
	bool is_aborted;
	void (*on_commit)(void *context);
	void *on_commit_context;
};

static inline bool journal_has(const struct journal *journal, uint32_t incompat)
{
	return (big32(journal->super->s_feature_incompat) & incompat) != 0;
}

static inline uint32_t journal_sectors(const struct journal *journal)
{
	return journal->place.block_size / SECTOR_SIZE;
}

/* The first comparison keeps the second one from wrapping. */
static inline bool journal_on_device(const struct journal *journal, uint64_t block)
{
	uint64_t sectors = journal->place.device->sectors;

	return block < sectors && (block + 1) * journal_sectors(journal) <= sectors;
}

/* Bytes of a descriptor or revoke block that its contents may use. */
static inline uint32_t journal_usable(const struct journal *journal)
{
	return journal->place.block_size - (journal->has_checksums ? sizeof(uint32_t) : 0);
}

/* Says on the console what is wrong with the journal's contents. Returns -EUCLEAN. */
int journal_corrupt(const struct journal *journal, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The device lost something: from now on nothing is written. Returns -EROFS. */
int journal_abort(struct journal *journal, const char *what, int error);

/* ---- fs/jbd2/log.c: blocks of the log ---- */

/* Asks where the file's blocks are. -EUCLEAN, -ENOMEM or the error of place.map. */
int journal_find_runs(struct journal *journal);

/* The block of the log after `block`. */
uint32_t journal_after(const struct journal *journal, uint32_t block);

/* Adds a block to the log, in the buffer, where it stays until the next call: zeros after the
 * header of its type and of the open transaction; or undefined (JOURNAL_COPY). journal_write_out
 * writes what is in the buffer, unless a full buffer was already. */
int journal_add(struct journal *journal, uint32_t type, uint8_t **block);
int journal_write_out(struct journal *journal);

/* Reads a block of the log, which stays valid until the next call. */
int journal_read(struct journal *journal, uint32_t logical, uint8_t **block);

/* What was written before is safe from a power cut after it. */
int journal_barrier(struct journal *journal);

/* Writes the superblock, which says that the log begins at `start` (0: is empty) with transaction
 * `sequence`. */
int journal_write_super(struct journal *journal, uint32_t start, uint32_t sequence);

/* The checksums of the superblock, and of a block: of all of it, but its own field counts as 0. */
uint32_t journal_super_checksum(const struct journal_super *super);
uint32_t journal_block_checksum(const struct journal *journal, const uint8_t *block,
				uint32_t field);

/* Puts the checksum into its field, if blocks have one: in a descriptor or revoke block it is at
 * the end (journal_usable). */
void journal_seal(const struct journal *journal, uint8_t *block, uint32_t field);

/* Of a copy, for its tag: `data`, but for its first word, which an escaped copy has not. */
uint32_t journal_copy_checksum(const struct journal *journal, uint32_t first_word,
			       const uint8_t *data, uint32_t sequence);

/* What depends on the features in the superblock: the length of a tag, checksums. */
void journal_use_features(struct journal *journal);

/* The log is empty, and is about to be written: gives it the features of the file system. */
void journal_prepare(struct journal *journal);

/* ---- fs/jbd2/commit.c ---- */

/* Blocks of the log that a transaction needs: with this many copies and revoked blocks. */
uint32_t journal_size(const struct journal *journal, uint32_t copies, uint32_t revoked);

/* Commits although a change is open: the caller is at a place where that may be. */
int journal_commit_open(struct journal *journal);

/* A block, or all of them, are no longer held. is_lost: they are never to be written either, and
 * the cache forgets them. */
void journal_release(struct journal *journal, struct cached_block *block);
void journal_release_all(struct journal *journal, bool is_lost);

/* Writes everything to its place and frees the log. Nothing is held. is_last: the superblock says
 * that the log is empty, and so it is clean for everybody. */
int journal_checkpoint(struct journal *journal, bool is_last);

/* ---- fs/jbd2/revoke.c ---- */

/* Blocks that fit into a revoke block. */
uint32_t journal_revokes_per_block(const struct journal *journal);

int revoke_table_open(struct revoke_table *table, unsigned order);
void revoke_table_clear(struct revoke_table *table);
void revoke_table_close(struct revoke_table *table);

/* The latest transaction counts. -ENOMEM. */
int revoke_add(struct revoke_table *table, uint64_t block, uint32_t sequence);
void revoke_remove(struct revoke_table *table, uint64_t block);

/* Whether a copy of the block in transaction `sequence` must not be replayed. */
bool revoke_covers(const struct revoke_table *table, uint64_t block, uint32_t sequence);

/* Adds the open transaction's revoke blocks to the log. */
int journal_add_revokes(struct journal *journal);

/* Takes the numbers in a revoke block into the table. -EUCLEAN, -ENOMEM. */
int journal_read_revokes(struct journal *journal, const uint8_t *block, uint32_t sequence);
