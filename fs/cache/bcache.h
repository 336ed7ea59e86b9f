/* A small cache of disk blocks, for metadata: the least recently used block is reused first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drivers/disk/block.h"

/* One cached block. Its data is valid, and must not be written to, until bcache_put. */
struct cached_block {
	struct block_device *device; /* NULL: empty */
	uint64_t block;		     /* in units of size */
	uint32_t size;		     /* bytes: 1024, 2048 or 4096 */
	uint32_t references;
	uint8_t *data;
	bool verified;		    /* a note of the user; false after each read from disk */
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
 * from the device, or -EBUSY when every buffer is referenced. A block that could not be read is
 * not cached.
 */
int bcache_get(struct block_device *device, uint64_t block, uint32_t size,
	       enum block_purpose purpose, struct cached_block **out);

/* Gives a buffer back; it stays cached. NULL is allowed. */
void bcache_put(struct cached_block *buffer);

/* Forgets every unreferenced block, so that the next reads are cold. Returns how many. */
uint32_t bcache_drop(void);

/* Counts since boot. */
const struct bcache_stats *bcache_statistics(void);
