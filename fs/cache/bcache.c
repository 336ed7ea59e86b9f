/*
 * The block cache: a hash table to find a block, and a list in the order of use, to choose the one
 * to reuse.
 *
 *	buckets[h(hdc, 7001)] --> block 7001 --chain--> block 912 --> NULL
 *
 *	lru --next--> (empty) --next--> block 7001 --next--> block 912 --next--> lru
 *		      oldest				     newest
 *
 * bcache_get moves a block to the newest end. When a block is not there and the cache has all the
 * buffers that it may have, the oldest one without references is read over: least recently used,
 * first out. A dirty one is written back first.
 *
 * Invariants: every buffer is in the list. A buffer is in the hash table if and only if its device
 * is not NULL; then its data is what the disk holds, or newer (dirty). A buffer with references, or
 * one that a transaction holds, is never given up, so its data stays where it is.
 *
 * Reading and writing sleep, and meanwhile other tasks use the cache. The task that transfers a
 * buffer has its mutex and a reference to it. A buffer is in the hash table before it is read, so a
 * second task that wants the same block finds it, and waits for the mutex:
 *
 *	task A	not there; enters it; locks; reads ........... unlocks
 *	task B			finds it; references it; locks (waits) ... unlocks; has it
 *
 * If the read fails, A takes the buffer out of the table: B finds device NULL and begins again.
 * A task that needs a buffer may write another mount's dirty block. It has no references
 * then, so no task changes it; the next task that gets it waits until it is written.
 *
 * A block that could not be written stays dirty, and nothing of it is lost. So no error is noted
 * here: the commit that must make the block safe tries again, does not succeed before it is
 * written, and tells each file that depends on it (fs/disk/ext_sync.c). Linux gives such a block
 * up, and so must note the error at once.
 */
#include "fs/cache/bcache.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"
#include "mm/pool.h"

#define BUCKET_BITS 15 /* 32768 chains: four blocks each, if a cache has 512 MiB */
#define WRITES_MAX  8  /* failed ones, before a task stops looking for a buffer */

static struct cached_block *buckets[1u << BUCKET_BITS];

static struct list lru = LIST_EMPTY(lru); /* the oldest buffer first */
static struct pool structures = POOL_INITIALIZER(struct cached_block);
static uint32_t buffers_now, buffers_most, blocks_now; /* of these buffers some are empty */
static uint32_t dirty_now;
static struct mutex writing_all; /* the task that has it uses the links `sorted` */
static struct bcache_stats stats;

/* Multiplication by 2^32 / golden ratio spreads neighbouring blocks over the upper bits. */
static struct cached_block **buffer_bucket(const struct block_device *device, uint64_t block)
{
	uint32_t key = (uint32_t)block ^ (uint32_t)(block >> 32) ^ (uint32_t)(uintptr_t)device;

	return &buckets[key * 0x9e3779b1u >> (32 - BUCKET_BITS)];
}

/* The same block may be cached in several sizes: two mounts may share a device. */
static struct cached_block *find_buffer(const struct block_device *device, uint64_t block,
					uint32_t size)
{
	struct cached_block *buffer = *buffer_bucket(device, block);

	while (buffer &&
	       (buffer->device != device || buffer->block != block || buffer->size != size))
		buffer = buffer->chain;
	return buffer;
}

static uint64_t first_sector(const struct cached_block *buffer)
{
	return buffer->block * (buffer->size / SECTOR_SIZE);
}

/* ---- the two structures ---- */

static struct cached_block *oldest_buffer(void)
{
	return list_entry(lru.next, struct cached_block, in_lru);
}

static void make_newest(struct cached_block *buffer)
{
	list_remove(&buffer->in_lru);
	list_append(&lru, &buffer->in_lru);
}

static void set_dirty(struct cached_block *buffer, bool is_dirty)
{
	dirty_now += is_dirty - buffer->is_dirty;
	buffer->is_dirty = is_dirty;
}

/* Empties a buffer: takes it out of the hash table. */
static void unhash_buffer(struct cached_block *buffer)
{
	struct cached_block **link = buffer_bucket(buffer->device, buffer->block);

	while (*link != buffer)
		link = &(*link)->chain;
	*link = buffer->chain;
	blocks_now--;
	buffer->device = NULL;
	set_dirty(buffer, false);
}

/* Enters an empty buffer into the hash table, with a reference for the caller. Nobody sleeps
 * between reuse_buffer and this. */
static void hash_buffer(struct cached_block *buffer, struct block_device *device, uint64_t block,
			uint32_t size)
{
	struct cached_block **bucket = buffer_bucket(device, block);

	buffer->device = device;
	buffer->block = block;
	buffer->size = size;
	buffer->references = 1;
	buffer->verified = false;
	buffer->is_first = false;
	buffer->seal = NULL;
	buffer->chain = *bucket;
	*bucket = buffer;
	blocks_now++;
	make_newest(buffer);
}

static bool is_free_buffer(const struct cached_block *buffer)
{
	return buffer->references == 0 && !buffer->transaction;
}

/* ---- a buffer for a block ---- */

/* One more buffer, empty; NULL without memory, or when the cache is as large as it may be. */
static struct cached_block *make_buffer(void)
{
	struct cached_block *buffer = buffers_now < buffers_most ? pool_alloc(&structures) : NULL;

	if (!buffer)
		return NULL;
	buffer->data = page_alloc(0);
	if (!buffer->data) {
		pool_free(&structures, buffer);
		return NULL;
	}
	buffers_now++;
	list_append(&lru, &buffer->in_lru);
	return buffer;
}

/* Skips buffers that are in use now, and counts them as used: so the next search is short. */
static struct cached_block *oldest_free(bool is_clean)
{
	for (uint32_t left = buffers_now; left > 0; left--) {
		if (is_free_buffer(oldest_buffer()) && !(is_clean && oldest_buffer()->is_dirty))
			return oldest_buffer();
		make_newest(oldest_buffer());
	}
	return NULL;
}

/* An empty buffer without references. Sleeps if it must write a dirty block; others may have
 * cached anything meanwhile. A block that cannot be written is passed over, it may be another
 * mount's: a clean one is better then. */
static int reuse_buffer(struct cached_block **out)
{
	struct cached_block *buffer = make_buffer();
	int error = 0;

	for (int failures = 0; !buffer; failures += error != 0) {
		struct cached_block *oldest = error ? oldest_free(true) : NULL;

		if (!oldest && failures < WRITES_MAX)
			oldest = oldest_free(false);
		if (!oldest)
			return error ? error : -EBUSY;
		error = bcache_write(oldest);
		if (error)
			make_newest(oldest);
		else if (is_free_buffer(oldest) && !oldest->is_dirty)
			buffer = oldest;
	}
	if (buffer->device)
		unhash_buffer(buffer);
	*out = buffer;
	return 0;
}

/* ---- getting a block ---- */

/* The block if it is cached, with a reference; waits for a task that reads or writes it. */
struct cached_block *bcache_find(struct block_device *device, uint64_t block, uint32_t size)
{
	struct cached_block *buffer;

	while ((buffer = find_buffer(device, block, size))) {
		buffer->references++;
		make_newest(buffer);
		if (!buffer->transfer.owner)
			return buffer;
		mutex_lock(&buffer->transfer);
		mutex_unlock(&buffer->transfer);
		if (buffer->device)
			return buffer;
		buffer->references--; /* it could not be read */
	}
	return NULL;
}

/* The block, with a reference. Returns 1 if it was not there: then its data is undefined. */
static int get_buffer(struct block_device *device, uint64_t block, uint32_t size,
		      struct cached_block **out)
{
	if (block >= device->sectors) /* so that block * sectors cannot wrap */
		return -EINVAL;
	while ((*out = bcache_find(device, block, size)) == NULL) {
		int error = reuse_buffer(out);

		if (error)
			return error;
		if (find_buffer(device, block, size))
			continue; /* somebody was faster */
		hash_buffer(*out, device, block, size);
		return 1;
	}
	return 0;
}

/* Fills a new buffer. When that fails, it is empty again, and the caller's reference is gone. */
static int read_buffer(struct cached_block *buffer)
{
	mutex_lock(&buffer->transfer);
	int error = block_read(buffer->device, first_sector(buffer), buffer->size / SECTOR_SIZE,
			       buffer->data, buffer->purpose);
	if (error)
		unhash_buffer(buffer);
	mutex_unlock(&buffer->transfer);
	if (error)
		buffer->references--;
	return error;
}

/* A hit costs no request, so the statistics by purpose are the lab's result. */
int bcache_get(struct block_device *device, uint64_t block, uint32_t size,
	       enum block_purpose purpose, struct cached_block **out)
{
	struct cached_block *buffer;
	int result = get_buffer(device, block, size, &buffer);

	(result == 0 ? stats.hits : stats.misses)[purpose]++;
	if (result == 1) {
		buffer->purpose = purpose;
		result = read_buffer(buffer);
	}
	if (result == 0)
		*out = buffer;
	return result;
}

int bcache_get_zeroed(struct block_device *device, uint64_t block, uint32_t size,
		      struct cached_block **out)
{
	struct cached_block *buffer;
	int result = get_buffer(device, block, size, &buffer);

	if (result < 0)
		return result;
	if (result == 1)
		buffer->purpose = BLOCK_OTHER;
	buffer->verified = false;
	buffer->seal = NULL;
	memset(buffer->data, 0, size);
	*out = buffer;
	return 0;
}

/* It stays where it is in the order of use: only getting a block counts as use. */
void bcache_put(struct cached_block *buffer)
{
	if (buffer)
		buffer->references--;
}

/* ---- writing back ---- */

/* A buffer that was forgotten belongs to no block: there is nothing to write. */
void bcache_mark_dirty(struct cached_block *buffer)
{
	if (buffer->device)
		set_dirty(buffer, true);
}

/* Nobody changes it meanwhile: its users have their lock, and who gets it now waits. It is dirty
 * until it is written, so that bcache_write_all waits for a write that another task has begun. */
int bcache_write(struct cached_block *buffer)
{
	int error = 0;

	buffer->references++;
	mutex_lock(&buffer->transfer);
	if (buffer->is_dirty && !buffer->transaction) {
		bcache_seal(buffer);
		error = block_write(buffer->device, first_sector(buffer),
				    buffer->size / SECTOR_SIZE, buffer->data, buffer->purpose);
		if (!error)
			set_dirty(buffer, false);
	}
	mutex_unlock(&buffer->transfer);
	buffer->references--;
	return error;
}

/* Takes the dirty blocks of a device that nobody holds into a list, each with a reference. Returns
 * how many. The newest are the likeliest, and it stops when it has seen all dirty ones. */
static uint32_t collect_dirty(const struct block_device *device, struct cached_block **list)
{
	struct list *link = lru.previous;
	uint32_t count = 0;

	for (uint32_t left = dirty_now; left > 0; link = link->previous) {
		struct cached_block *buffer = list_entry(link, struct cached_block, in_lru);

		left -= buffer->is_dirty;
		if (!buffer->is_dirty || buffer->device != device || buffer->transaction)
			continue;
		buffer->references++;
		buffer->sorted = *list;
		*list = buffer;
		count++;
	}
	return count;
}

/* Joins two sorted lists. */
static struct cached_block *merge_dirty(struct cached_block *left, struct cached_block *right)
{
	struct cached_block *first = NULL, **end = &first;

	while (left && right) {
		bool is_left = left->is_first != right->is_first
				   ? left->is_first
				   : first_sector(left) <= first_sector(right);
		struct cached_block **lower = is_left ? &left : &right;

		*end = *lower;
		end = &(*end)->sorted;
		*lower = *end;
	}
	*end = left ? left : right;
	return first;
}

/* Takes `count` (at least 1) buffers off a list, and sorts them. Depth: log2 of count. */
static struct cached_block *sort_dirty(struct cached_block **list, uint32_t count)
{
	if (count == 1) {
		struct cached_block *buffer = *list;

		*list = buffer->sorted;
		buffer->sorted = NULL;
		return buffer;
	}
	struct cached_block *left = sort_dirty(list, count / 2);

	return merge_dirty(left, sort_dirty(list, count - count / 2));
}

/* In ascending order, because that is the shortest way for a disk's arm; but what an inode on the
 * disk is about to refer to before it. */
int bcache_write_all(struct block_device *device)
{
	struct cached_block *list = NULL, *next;
	int error = 0;

	mutex_lock(&writing_all);
	uint32_t count = collect_dirty(device, &list);

	for (list = count > 0 ? sort_dirty(&list, count) : NULL; list; list = next) {
		int failed = bcache_write(list);

		error = error ? error : failed;
		next = list->sorted;
		bcache_put(list);
	}
	mutex_unlock(&writing_all);
	return error;
}

/* ---- giving up ---- */

/* Waits for a write that another task has begun: it must not come after those of the new owner. */
static void forget_block(struct block_device *device, uint64_t block, uint32_t size)
{
	struct cached_block *buffer = bcache_find(device, block, size);

	if (!buffer)
		return;
	if (buffer->device && !buffer->transaction)
		unhash_buffer(buffer);
	bcache_put(buffer);
}

void bcache_forget(struct block_device *device, uint64_t first, uint64_t count, uint32_t size)
{
	for (uint64_t i = 0; i < count; i++)
		forget_block(device, first + i, size);
}

/* Frees up to `most` buffers, the oldest first: clean ones, or the dirty ones of a device that is
 * `lost`. */
static uint32_t free_buffers(const struct block_device *lost, uint32_t most)
{
	struct list *link = lru.next, *next;
	uint32_t freed = 0;

	for (; link != &lru && freed < most; link = next) {
		struct cached_block *buffer = list_entry(link, struct cached_block, in_lru);

		next = link->next;
		if (!is_free_buffer(buffer) || (buffer->is_dirty ? buffer->device : NULL) != lost)
			continue;
		if (buffer->device)
			unhash_buffer(buffer);
		list_remove(link);
		page_free(buffer->data, 0);
		pool_free(&structures, buffer);
		buffers_now--;
		freed++;
	}
	return freed;
}

uint32_t bcache_drop(void)
{
	uint32_t before = blocks_now;

	free_buffers(NULL, UINT32_MAX);
	return before - blocks_now;
}

void bcache_abandon(const struct block_device *device)
{
	free_buffers(device, UINT32_MAX);
}

uint32_t bcache_shrink(uint32_t count)
{
	return free_buffers(NULL, count);
}

uint32_t bcache_init(uint32_t blocks)
{
	buffers_most = blocks;
	return blocks;
}

uint32_t bcache_size(void)
{
	return buffers_most;
}

const struct bcache_stats *bcache_statistics(void)
{
	return &stats;
}
