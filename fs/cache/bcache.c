/*
 * The block cache: a hash table to find a block, and a list in the order of use, to choose the one
 * to reuse.
 *
 *	buckets[h(hdc, 7001)] --> block 7001 --chain--> block 912 --> NULL
 *
 *	ends --older--> block 912 --older--> block 7001 --older--> (empty) --older--> ends
 *	     newest						     oldest
 *
 * bcache_get moves a block to the newest end. When a block is not there, the oldest one without
 * references is read over: least recently used, first out. `ends` closes the list to a ring, so no
 * insertion has a special case.
 *
 * Invariants: every buffer is in the list. A buffer is in the hash table if and only if its device
 * is not NULL, and then its data is what the disk holds. A buffer with references is never given
 * up, so its data stays where it is.
 *
 * Reading waits for the drive. There is one flow of control (the storage lab's kernel), so nothing
 * is locked; interrupt handlers must not call it.
 */
#include "fs/cache/bcache.h"

#include <stddef.h>

#include "kernel/lib/errno.h"
#include "mm/page_alloc.h"

#define BUCKET_BITS 15 /* 32768 chains: four blocks each, if a cache has 512 MiB */

static struct cached_block *buckets[1u << BUCKET_BITS];

/* Joins both ends of the list: ends.newer is the oldest buffer, and ends.older the newest. */
static struct cached_block ends = { .older = &ends, .newer = &ends };

static struct bcache_stats stats;

/* Multiplication by 2^32 / golden ratio spreads neighbouring blocks over the upper bits. */
static struct cached_block **bucket_of(const struct block_device *device, uint64_t block)
{
	uint32_t key = (uint32_t)block ^ (uint32_t)(block >> 32) ^ (uint32_t)(uintptr_t)device;

	return &buckets[key * 0x9e3779b1u >> (32 - BUCKET_BITS)];
}

/* The same block may be cached in several sizes: two mounts may share a device. */
static struct cached_block *find(const struct block_device *device, uint64_t block, uint32_t size)
{
	struct cached_block *buffer = *bucket_of(device, block);

	while (buffer != NULL &&
	       (buffer->device != device || buffer->block != block || buffer->size != size))
		buffer = buffer->chain;
	return buffer;
}

/* The buffer is in no list. */
static void insert_newest(struct cached_block *buffer)
{
	buffer->older = ends.older;
	buffer->newer = &ends;
	buffer->older->newer = buffer;
	ends.older = buffer;
}

/* Out of its place, and in again at the newest end. */
static void make_newest(struct cached_block *buffer)
{
	buffer->older->newer = buffer->newer;
	buffer->newer->older = buffer->older;
	insert_newest(buffer);
}

/* Empties a buffer: takes it out of the hash table. */
static void forget(struct cached_block *buffer)
{
	struct cached_block **link = bucket_of(buffer->device, buffer->block);

	while (*link != buffer)
		link = &(*link)->chain;
	*link = buffer->chain;
	buffer->device = NULL;
}

/* An empty buffer, made from the oldest that nobody references; NULL if there is none. */
static struct cached_block *take_oldest(void)
{
	struct cached_block *buffer = ends.newer;

	while (buffer != &ends && buffer->references > 0)
		buffer = buffer->newer;
	if (buffer == &ends)
		return NULL;
	if (buffer->device != NULL)
		forget(buffer);
	return buffer;
}

/* Enters a buffer that has been filled into the hash table. */
static void remember(struct cached_block *buffer, struct block_device *device, uint64_t block)
{
	struct cached_block **bucket = bucket_of(device, block);

	buffer->device = device;
	buffer->block = block;
	buffer->verified = false;
	buffer->chain = *bucket;
	*bucket = buffer;
}

/* Reads a block into a buffer, which enters the hash table only when it holds the contents. */
static int load(struct block_device *device, uint64_t block, uint32_t size,
		enum block_purpose purpose, struct cached_block **out)
{
	unsigned sectors = size / SECTOR_SIZE;
	struct cached_block *buffer;
	int error;

	if (block >= device->sectors) /* so that block * sectors cannot wrap */
		return -EINVAL;
	buffer = take_oldest();
	if (buffer == NULL)
		return -EBUSY;
	buffer->references = 1; /* nobody else may take it during the read */
	error = block_read(device, block * sectors, sectors, buffer->data, purpose);
	buffer->references = 0;
	if (error)
		return error;
	buffer->size = size;
	remember(buffer, device, block);
	*out = buffer;
	return 0;
}

/* A hit costs no request, so the statistics by purpose are the lab's result. */
int bcache_get(struct block_device *device, uint64_t block, uint32_t size,
	       enum block_purpose purpose, struct cached_block **out)
{
	struct cached_block *buffer = find(device, block, size);

	if (buffer != NULL) {
		stats.hits[purpose]++;
	} else {
		int error = load(device, block, size, purpose, &buffer);

		stats.misses[purpose]++;
		if (error)
			return error;
	}
	buffer->references++;
	make_newest(buffer);
	*out = buffer;
	return 0;
}

/* It stays in its place in the order of use: only getting a block counts as use. */
void bcache_put(struct cached_block *buffer)
{
	if (buffer != NULL)
		buffer->references--;
}

/* The buffers stay in the list, empty, in their places. */
uint32_t bcache_drop(void)
{
	uint32_t dropped = 0;

	for (struct cached_block *buffer = ends.newer; buffer != &ends; buffer = buffer->newer) {
		if (buffer->device == NULL || buffer->references > 0)
			continue;
		forget(buffer);
		dropped++;
	}
	return dropped;
}

/* Makes up to `wanted` empty buffers in one page of structures. Returns how many. */
static uint32_t make_buffers(struct cached_block *buffers, uint32_t wanted)
{
	uint32_t made = 0;

	while (made < wanted && made < PAGE_SIZE / sizeof(struct cached_block)) {
		uint8_t *data = page_alloc(0);

		if (data == NULL)
			break;
		buffers[made] = (struct cached_block){ .data = data };
		insert_newest(&buffers[made++]);
	}
	return made;
}

/* A page holds many structures, and each has a page of data. Less memory makes a smaller cache, not
 * a failure. */
uint32_t bcache_init(uint32_t blocks)
{
	uint32_t total = 0;

	while (total < blocks) {
		struct cached_block *page = page_alloc(0);
		uint32_t made = page == NULL ? 0 : make_buffers(page, blocks - total);

		if (made == 0 && page != NULL)
			page_free(page, 0);
		if (made == 0)
			break;
		total += made;
	}
	return total;
}

const struct bcache_stats *bcache_statistics(void)
{
	return &stats;
}
