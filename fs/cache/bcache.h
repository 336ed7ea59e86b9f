/*
 * A cache of disk blocks, for metadata: blocks are read, changed in memory, and written back later.
 *
 *	clean	as on the disk; may be reused for another block: the least recently used first
 *	dirty	newer than on the disk; is written back before its memory is reused
 *	held	part of a transaction that is not committed yet: must not be written back,
 *		whatever happens, before the journal lets it go (fs/jbd2)
 *
 * The users of one device serialize their calls (fs/ext/ext.h: one mount, one lock). Users of
 * different devices share the buffers and need no lock between them. May sleep, except
 * bcache_put, bcache_mark_dirty, bcache_drop and bcache_shrink; not for interrupt handlers.
 */
#pragma once

#include "drivers/disk/block.h"
#include "kernel/lib/list.h"
#include "kernel/task/lock.h"

/* One cached block. Its data is valid until bcache_put. Write to it only with the right of a
 * transaction (journal_change), or, without a journal, before bcache_mark_dirty. */
struct cached_block {
	struct block_device *device; /* NULL: empty */
	uint64_t block;		     /* in units of size */
	uint32_t size;		     /* bytes: 1024, 2048 or 4096 */
	uint32_t references;
	uint8_t *data;
	enum block_purpose purpose; /* of its requests */
	uint32_t verified;	    /* a note of the user; 0 after each read from disk */
	bool is_dirty;		    /* newer than on the disk; set by bcache_mark_dirty only */
	bool is_first;		    /* bcache_write_all writes it before others; the user's */
	/* Called before the data goes to the disk or into a journal, to write its checksum. NULL:
	 * nothing. The other members are the user's. */
	void (*seal)(struct cached_block *buffer);
	uint32_t seal_seed, seal_at;
	const void *seal_for;
	void *transaction;	     /* of fs/jbd2, which holds the block; NULL: nobody does */
	struct list held;	     /* of fs/jbd2: the transaction's blocks */
	struct mutex transfer;	     /* of the task that reads or writes it at the moment */
	struct list in_lru;	     /* in the order of use */
	struct cached_block *chain;  /* same hash */
	struct cached_block *sorted; /* in a list that bcache_write_all makes */
};

struct bcache_stats {
	uint64_t hits[BLOCK_PURPOSES];
	uint64_t misses[BLOCK_PURPOSES]; /* reads that failed included */
};

/* The cache may have up to `blocks` buffers of 4 KiB. It takes memory for one when it needs it.
 * Returns `blocks`. Call once, before the first bcache_get. */
uint32_t bcache_init(uint32_t blocks);

/*
 * Gets block `block` of `size` bytes, from the cache or from the device. On success returns 0 and
 * a referenced buffer in *out; give it back with bcache_put. Otherwise -EIO, -EINVAL or -ETIMEDOUT
 * from the device, or -EBUSY when every buffer is referenced or held and none can be
 * added. A block that could not be read is not cached. When the oldest buffers are dirty and
 * cannot be written, the result is their error.
 */
int bcache_get(struct block_device *device, uint64_t block, uint32_t size,
	       enum block_purpose purpose, struct cached_block **out);

/* The same for a block that has just been allocated: it is not read, and its data is zeros. The
 * caller changes it in a transaction, or makes it dirty, before bcache_put. */
int bcache_get_zeroed(struct block_device *device, uint64_t block, uint32_t size,
		      struct cached_block **out);

/* The block if it is in the cache, with a reference; else NULL. It does not count as a hit. */
struct cached_block *bcache_find(struct block_device *device, uint64_t block, uint32_t size);

/* Gives a buffer back; it stays cached. NULL is allowed. */
void bcache_put(struct cached_block *buffer);

/* The same at the end of what has a result: returns that. */
static inline int bcache_done(struct cached_block *buffer, int result)
{
	bcache_put(buffer);
	return result;
}

/* Before the data is written or copied: calls `seal`, if it is set. */
static inline void bcache_seal(struct cached_block *buffer)
{
	void (*seal)(struct cached_block *block) = buffer->seal;

	buffer->seal = NULL;
	if (seal)
		seal(buffer);
}

/* The caller, who has a reference, is about to change the data (or has done so and did not sleep in
 * between): it is to be written back some time. */
void bcache_mark_dirty(struct cached_block *buffer);

/* Writes a block back if it is dirty and nobody holds it. The caller has a reference.
 * Returns 0, or the device's error: then it is still dirty. */
int bcache_write(struct cached_block *buffer);

/* Writes all dirty blocks of a device that nobody holds: in ascending order those with is_first,
 * then the others. Does not flush the drive's own cache. Returns 0, or the first error; the others
 * are written all the same. */
int bcache_write_all(struct block_device *device);

/* The blocks were freed: their cached contents are not written any more, and are dropped from the
 * cache. A buffer that somebody has a reference to belongs to no block from then on. No transaction
 * holds them. */
void bcache_forget(struct block_device *device, uint64_t first, uint64_t count, uint32_t size);

/* The device's mount has ended: what could not be written is not written any more. No transaction
 * holds a block of it. */
void bcache_abandon(const struct block_device *device);

/* Somebody reads or writes sectors past this cache (the file of a block device): what is cached of
 * them is put on top of what was read, or gets what was written. */
void bcache_overlay(struct block_device *device, uint64_t lba, unsigned count, void *data,
		    bool is_write);

/* Forgets every clean unreferenced block, and frees its memory, so that the next reads are cold.
 * Returns how many. */
uint32_t bcache_drop(void);

/* Gives the memory of up to `count` clean unreferenced buffers back, the oldest first. Returns how
 * many pages that were. For mm, when no page is free. */
uint32_t bcache_shrink(uint32_t count);

/* How many buffers there may be. */
uint32_t bcache_size(void);

/* Counts since boot. */
const struct bcache_stats *bcache_statistics(void);
