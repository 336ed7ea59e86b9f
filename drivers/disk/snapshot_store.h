/*
 * The store of a snapshot (drivers/disk/snapshot.h): which chunks of the origin have a copy, and
 * where. By the task that serves the origin's queue, and start-up.
 */
#pragma once

#include "drivers/disk/device.h"

#define SNAPSHOT_CHUNK	     16u /* sectors */
#define SNAPSHOT_CHUNK_LEAST 8u
#define SNAPSHOT_CHUNK_MOST  BLOCK_TRANSFER_SECTORS

struct exception {
	struct exception *next; /* of the same bucket */
	uint32_t chunk;		/* of the origin */
	uint32_t number;	/* which one of the table; it says where the chunk's copy is */
};

struct snapshot {
	struct block_device device;
	char name[8];
	struct block_device *origin; /* NULL: this place is free */
	struct block_device *store;
	unsigned chunk;	     /* sectors: a power of two */
	bool is_persistent;  /* the store has the table, too: it is there after a power cut */
	const char *failure; /* why it is invalid; NULL: it is valid */

	struct exception **buckets;
	uint32_t bucket_mask;
	uint32_t count, room; /* of exceptions */
	uint8_t *copy;	      /* room for a chunk */

	/* The table's latest sector, and whether it differs from the store's. */
	struct table_entry {
		uint64_t chunk, copy;
	} sector[SECTOR_SIZE / 16];
	bool is_changed;
};

/* Finds the snapshot's store usable, and reads or begins its table. */
int snapshot_store_open(struct snapshot *snapshot);

/* Frees what that allocated. */
void snapshot_store_close(struct snapshot *snapshot);

/* Writes on a persistent store whether the snapshot is valid; is_lost: that it has none any more.
 * Returns 0 or a negated errno. */
int snapshot_store_mark(struct snapshot *snapshot, bool is_lost);

/* After an error (0: nothing happens) the snapshot is invalid, which the console and the store are
 * told once. Returns the error. */
int snapshot_invalidate(struct snapshot *snapshot, const char *why, int error);

/* The exception of a chunk, or NULL. */
struct exception *exception_find(const struct snapshot *snapshot, uint32_t chunk);

/* Where on the store an exception's chunk begins: its sector. */
uint64_t exception_lba(const struct snapshot *snapshot, uint32_t number);

/* One more: the copy must be on the store already, where exception_lba says for the number `count`.
 * Writes the table's sector when it is full. Returns 0 or a negated errno; after that, and where
 * exception_commit fails, the snapshot is invalid. */
int exception_add(struct snapshot *snapshot, uint32_t chunk);

/* All copies and exceptions are safe from a power cut when it returns 0. */
int exception_commit(struct snapshot *snapshot);
