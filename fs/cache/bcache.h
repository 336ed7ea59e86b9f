/*
 * A cache of disk blocks, for metadata: blocks are read, changed in memory, and written back later.
 *
 *	clean	as on the disk; may be reused for another block: the least recently used first
 *	dirty	newer than on the disk; is written to its place before its memory is reused
 *	held	part of a transaction that is not committed yet: must not be written to its place,
 *		whatever happens, before the journal lets it go (fs/jbd2)
 *
 * Who uses a file system serializes its calls (fs/ext/ext.h), so nothing here is locked but what
 * several devices share. May sleep; not for interrupt handlers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drivers/disk/block.h"

/* One cached block. Its data is valid until bcache_put. Write to it only with the right of a
 * transaction (journal_change), or, without a journal, before bcache_mark_dirty. */
struct cached_block {
	struct block_device *device; /* NULL: empty */
	uint64_t block;		     /* in units of size */
	uint32_t size;		     /* bytes: 1024, 2048 or 4096 */
	uint32_t references;
	uint8_t *data;
	bool verified;		    /* a note of the user; false after each read from disk */
	bool is_dirty;		    /* newer than on the disk */
	void *transaction;	    /* of fs/jbd2, which holds the block; NULL: nobody does */
	struct cached_block *older; /* in the order of use */
	struct cached_block *newer;
	struct cached_block *chain; /* same hash */
};

struct bcache_stats {
	uint64_t hits[BLOCK_PURPOSES];
	uint64_t misses[BLOCK_PURPOSES]; /* reads that failed included */
};

/* Makes room for up to `blocks` blocks of 4 KiB. Returns the number it could get memory for.
 * Call once, before the first bcache_get. */
uint32_t bcache_init(uint32_t blocks);

/*
 * Gets block `block` of `size` bytes, from the cache or from the device. On success returns 0 and
 * a referenced buffer in *out; give it back with bcache_put. Otherwise -EIO, -EINVAL or -ETIMEDOUT
 * from the device, or -EBUSY when every buffer is referenced or held. A block that could not be
 * read is not cached.
 */
int bcache_get(struct block_device *device, uint64_t block, uint32_t size,
	       enum block_purpose purpose, struct cached_block **out);

/* The same for a block that has just been allocated: it is not read, and its data is zeros. */
int bcache_get_zeroed(struct block_device *device, uint64_t block, uint32_t size,
		      struct cached_block **out);

/* Gives a buffer back; it stays cached. NULL is allowed. */
void bcache_put(struct cached_block *buffer);

/* The data was changed, and is to be written to its place some time. */
void bcache_mark_dirty(struct cached_block *buffer);

/* Writes one dirty block, that nobody holds, to its place. Returns 0, or the device's error: then
 * it is still dirty. */
int bcache_write(struct cached_block *buffer);

/* Writes all dirty blocks of a device that nobody holds, in ascending order. Does not flush the
 * drive's own cache. Returns 0, or the first error; the others are written all the same. */
int bcache_write_all(struct block_device *device);

/* The blocks were freed: what is cached of them is not written any more. The caller has no
 * references to them, and no transaction holds them. */
void bcache_forget(struct block_device *device, uint64_t first, uint64_t count, uint32_t size);

/* Forgets every clean unreferenced block, so that the next reads are cold. Returns how many. */
uint32_t bcache_drop(void);

/* Counts since boot. */
const struct bcache_stats *bcache_statistics(void);
