/*
 * The block cache with several tasks: cache_host SEED STEPS.
 *
 * Two drives are each used by two tasks, which take turns by a lock of the drive, as mounts do, and
 * change blocks. A third one is only read, by two tasks without a lock. Requests sleep, in random
 * places, and some fail. A buffer is filled with junk before it sleeps for the read, so that nobody
 * may see it before. A model knows what each block must hold.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/cache/bcache.h"
#include "kernel/lib/errno.h"
#include "kernel/task/lock.h"
#include "mm/page_alloc.h"
#include "mm/pool.h"
#include "tests/host/cache/tasks.h"

#define DRIVES	3u
#define BLOCKS	24u
#define BUFFERS 14u
#define SIZE	1024u
#define FAILS	60 /* one request of this many */

struct drive {
	struct block_device device;
	struct mutex lock;
	uint32_t disk[BLOCKS];	 /* number in the block, as the drive has it */
	uint32_t wanted[BLOCKS]; /* as it must be */
	bool is_moving[BLOCKS];	 /* a request is under way */
	bool is_held[BLOCKS];	 /* by a transaction */
	struct cached_block *held[BLOCKS];
};

static struct drive drives[DRIVES];
static const struct drive *dead; /* one that cannot be written to, while the others do not fail */
static uint32_t last_number, steps;
static uint64_t reads, writes, errors, full;
static size_t pages_out;

static void wrong(const char *what, const struct drive *drive, uint64_t block)
{
	fprintf(stderr, "FAILED: %s: drive %ju, block %ju\n", what, (uintmax_t)(drive - drives),
		block);
	abort();
}

/* ---- below the cache ---- */

static struct drive *drive_of(struct block_device *device)
{
	return (struct drive *)((char *)device - offsetof(struct drive, device));
}

/* A request sleeps, and no two may be under way for one block. */
static int move(struct drive *drive, uint64_t block)
{
	if (drive->is_moving[block])
		wrong("two requests at a time", drive, block);
	drive->is_moving[block] = true;
	sleep_a_while();
	drive->is_moving[block] = false;
	if (dead || random_below(&chance, FAILS) != 0)
		return 0;
	errors++;
	return -EIO;
}

int block_read(struct block_device *device, uint64_t lba, unsigned count, void *buffer,
	       enum block_purpose purpose)
{
	struct drive *drive = drive_of(device);
	uint64_t block = lba / (SIZE / SECTOR_SIZE);
	int error;

	(void)count, (void)purpose;
	reads++;
	memset(buffer, 0xEE, SIZE);
	error = move(drive, block);
	if (!error)
		memcpy(buffer, &drive->disk[block], sizeof(uint32_t));
	return error;
}

int block_write(struct block_device *device, uint64_t lba, unsigned count, const void *buffer,
		enum block_purpose purpose)
{
	struct drive *drive = drive_of(device);
	uint64_t block = lba / (SIZE / SECTOR_SIZE);
	uint32_t before, after;
	int error;

	(void)count, (void)purpose;
	writes++;
	if (dead && drive == dead)
		return -EIO;
	if (drive->is_held[block])
		wrong("a held block is written", drive, block);
	memcpy(&before, buffer, sizeof(before));
	error = move(drive, block);
	memcpy(&after, buffer, sizeof(after));
	if (before != after)
		wrong("a block is changed while it is written", drive, block);
	if (!error)
		drive->disk[block] = after;
	return error;
}

/* Memory is scarce: who asks for it may find the cache shrunk. */
void *page_alloc(unsigned order)
{
	pages_out++;
	return aligned_alloc(PAGE_SIZE, (size_t)PAGE_SIZE << order);
}

void page_free(void *pages, unsigned order)
{
	(void)order;
	pages_out--;
	free(pages);
}

void *pool_alloc(struct pool *pool)
{
	pool->used++;
	return calloc(1, pool->size);
}

void pool_free(struct pool *pool, void *object)
{
	pool->used--;
	free(object);
}

/* ---- what tasks do ---- */

static void set(struct drive *drive, struct cached_block *buffer, uint32_t block)
{
	bcache_mark_dirty(buffer);
	drive->wanted[block] = ++last_number;
	memcpy(buffer->data, &last_number, sizeof(last_number));
}

static void check(struct drive *drive, const struct cached_block *buffer, uint32_t block)
{
	if (buffer->device != &drive->device || buffer->block != block)
		wrong("another block", drive, block);
	if (memcmp(buffer->data, &drive->wanted[block], sizeof(uint32_t)) != 0)
		wrong("wrong contents", drive, block);
}

/* A transaction holds the block from now on; later it is let go. */
static void hold(struct drive *drive, struct cached_block *buffer, uint32_t block)
{
	if (drive->is_held[block] || random_below(&chance, 3) != 0)
		return;
	buffer->transaction = drive;
	drive->is_held[block] = true;
	drive->held[block] = buffer;
}

static void let_go(struct drive *drive)
{
	for (uint32_t block = 0; block < BLOCKS; block++)
		if (drive->is_held[block]) {
			drive->held[block]->transaction = NULL;
			drive->is_held[block] = false;
		}
}

static void use(struct drive *drive, uint32_t block, bool may_change)
{
	bool zeroed = may_change && random_below(&chance, 6) == 0;
	struct cached_block *buffer;
	int error = zeroed ? bcache_get_zeroed(&drive->device, block, SIZE, &buffer)
			   : bcache_get(&drive->device, block, SIZE, BLOCK_OTHER, &buffer);

	full += error == -EBUSY;
	if (error && error != -EIO && error != -EBUSY)
		wrong("an unexpected error", drive, block);
	if (error)
		return;
	if (!zeroed)
		check(drive, buffer, block);
	if (zeroed || (may_change && random_below(&chance, 2)))
		set(drive, buffer, block);
	if (may_change && buffer->is_dirty)
		hold(drive, buffer, block);
	if (random_below(&chance, 4) == 0)
		sleep_a_while();
	check(drive, buffer, block);
	bcache_put(buffer);
}

static void write_all(struct drive *drive)
{
	if (bcache_write_all(&drive->device) != 0)
		return;
	for (uint32_t block = 0; block < BLOCKS; block++)
		if (!drive->is_held[block] && drive->disk[block] != drive->wanted[block])
			wrong("not written", drive, block);
}

/* What is cached of some blocks is not wanted any more. */
static void forget(struct drive *drive, uint32_t block)
{
	for (uint32_t i = block; i < block + 3; i++)
		if (i >= BLOCKS || drive->is_held[i])
			return;
	bcache_forget(&drive->device, block, 3, SIZE);
	for (uint32_t i = block; i < block + 3; i++)
		drive->wanted[i] = drive->disk[i];
}

static void change_drive(struct drive *drive)
{
	uint32_t block = (uint32_t)random_below(&chance, BLOCKS);

	mutex_lock(&drive->lock);
	switch (random_below(&chance, 12)) {
	case 0:
		write_all(drive);
		break;
	case 1:
		forget(drive, block);
		break;
	case 2:
	case 3:
		let_go(drive);
		break;
	default:
		use(drive, block, true);
	}
	mutex_unlock(&drive->lock);
}

static void work(uint32_t task)
{
	struct drive *drive = &drives[task % DRIVES];

	for (uint32_t i = 0; i < steps; i++) {
		if (drive == &drives[DRIVES - 1])
			use(drive, (uint32_t)random_below(&chance, BLOCKS), false);
		else
			change_drive(drive);
		if (random_below(&chance, 50) == 0)
			bcache_drop();
		if (random_below(&chance, 50) == 0)
			bcache_shrink(1 + (uint32_t)random_below(&chance, 4));
	}
}

/* Nearly all that is cached cannot be written: what is read from another drive is there all the
 * same, and nothing is lost. */
static void fill_with_a_dead_drive(void)
{
	struct cached_block *buffer;

	dead = &drives[0];
	for (uint32_t block = 0; block < BUFFERS - 1; block++) {
		if (bcache_get(&drives[0].device, block, SIZE, BLOCK_OTHER, &buffer))
			wrong("cannot be read", &drives[0], block);
		set(&drives[0], buffer, block);
		bcache_put(buffer);
	}
	for (uint32_t block = 0; block < BLOCKS; block++) {
		if (bcache_get(&drives[DRIVES - 1].device, block, SIZE, BLOCK_OTHER, &buffer))
			wrong("another drive's error", &drives[DRIVES - 1], block);
		check(&drives[DRIVES - 1], buffer, block);
		bcache_put(buffer);
	}
	if (bcache_write_all(&drives[0].device) != -EIO)
		wrong("a commit does not fail", &drives[0], 0);
	dead = NULL;
}

/* Everything can be written and given back: nobody has forgotten a reference. */
static void finish(void)
{
	for (uint32_t i = 0; i < DRIVES; i++) {
		let_go(&drives[i]);
		while (bcache_write_all(&drives[i].device) != 0)
			;
		for (uint32_t block = 0; block < BLOCKS; block++)
			if (drives[i].disk[block] != drives[i].wanted[block])
				wrong("lost", &drives[i], block);
	}
	bcache_shrink(BUFFERS);
	if (pages_out != 0)
		wrong("buffers are still referenced", drives, pages_out);
}

int main(int count, char **arguments)
{
	if (count != 3)
		return 2;
	chance.state = strtoull(arguments[1], NULL, 0);
	steps = (uint32_t)strtoul(arguments[2], NULL, 0);
	for (uint32_t i = 0; i < DRIVES; i++) {
		drives[i].device.sectors = BLOCKS * (SIZE / SECTOR_SIZE);
		for (uint32_t block = 0; block < BLOCKS; block++)
			drives[i].disk[block] = drives[i].wanted[block] = ++last_number;
	}
	bcache_init(BUFFERS);
	fill_with_a_dead_drive();
	run_tasks(work);
	finish();
	printf("reads %ju writes %ju errors %ju full %ju\n", reads, writes, errors, full);
	return 0;
}
