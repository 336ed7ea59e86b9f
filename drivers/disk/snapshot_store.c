/*
 * The store of a snapshot: the format of Linux's device-mapper target "snapshot"
 * (Documentation/admin-guide/device-mapper/snapshot.rst; drivers/md/dm-snap-persistent.c), in
 * chunks:
 *
 *	0	header		magic "SnAp", is it valid, version 1, sectors of a chunk
 *	1	table		entries of 16 bytes: chunk of the origin, chunk of its copy
 *	2 ...	copies		one for each entry of the table before them
 *	then	table, copies, table, copies, ...
 *
 * Entries are in the order in which they were made, and the first one with copy 0 is the end. So
 * the number of an entry says where the entry is, and where its copy is:
 *
 *	chunks of 16 sectors: 512 entries a table
 *	entry 0		table chunk 1, copy chunk 2		entry 512	514, 515
 *
 * Ours is the size of the origin, in the header after Linux's words: a store of another drive is
 * refused. In memory entries are in a hash table.
 *
 * The order of writes is the promise: copy, FLUSH CACHE, entry (forced), and only then may the
 * origin be overwritten. A power cut before the entry leaves a copy that nobody knows, and an
 * origin that still has the same. A sector of the table is written whole, so it is never torn.
 *
 * What is not promised, by Linux neither: an origin that is written while its snapshot is not there
 * (the setting "snapshot" is missing at the next boot) makes the snapshot wrong.
 */
#include "drivers/disk/snapshot_store.h"

#include "drivers/disk/block.h"
#include "drivers/disk/queue.h"
#include "kernel/lib/divide.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/report/printk.h"
#include "mm/kmalloc.h"

#define MAGIC	     0x70416e53u
#define VERSION	     1u
#define PER_SECTOR   (SECTOR_SIZE / 16)
#define BUCKETS_MOST 65536u

struct header {
	uint32_t magic, is_valid, version, chunk;
	uint64_t origin_sectors; /* ours */
	uint8_t unused[SECTOR_SIZE - 24];
};

/* ---- in memory ---- */

struct exception *exception_find(const struct snapshot *snapshot, uint32_t chunk)
{
	struct exception *each = snapshot->buckets[chunk & snapshot->bucket_mask];

	while (each && each->chunk != chunk)
		each = each->next;
	return each;
}

/* The number is the next one: that says where the copy is. */
static int insert_exception(struct snapshot *snapshot, uint32_t chunk)
{
	struct exception **bucket = &snapshot->buckets[chunk & snapshot->bucket_mask];
	struct exception *made = kmalloc(sizeof(*made));

	if (!made)
		return -ENOMEM;
	*made = (struct exception){ *bucket, chunk, snapshot->count++ };
	*bucket = made;
	return 0;
}

/* The memory goes; what is on the store stays as it is. */
void snapshot_store_close(struct snapshot *snapshot)
{
	for (uint32_t i = 0; snapshot->buckets && i <= snapshot->bucket_mask; i++)
		while (snapshot->buckets[i]) {
			struct exception *each = snapshot->buckets[i];

			snapshot->buckets[i] = each->next;
			kfree(each);
		}
	kfree(snapshot->buckets);
	kfree(snapshot->copy);
	snapshot->buckets = NULL;
	snapshot->copy = NULL;
	snapshot->count = 0;
}

/* ---- places ---- */

/* A table is a chunk of entries, and their copies are in the chunks after it. */
static uint32_t per_table(const struct snapshot *snapshot)
{
	return snapshot->chunk * PER_SECTOR;
}

/* The chunk of the table that has this entry. */
static uint64_t table_chunk(const struct snapshot *snapshot, uint32_t number)
{
	return 1 + (uint64_t)(number / per_table(snapshot)) * (per_table(snapshot) + 1);
}

static uint64_t copy_chunk(const struct snapshot *snapshot, uint32_t number)
{
	return table_chunk(snapshot, number) + 1 + number % per_table(snapshot);
}

uint64_t exception_lba(const struct snapshot *snapshot, uint32_t number)
{
	return copy_chunk(snapshot, number) * snapshot->chunk;
}

/* The sector that has an entry. */
static uint64_t entry_lba(const struct snapshot *snapshot, uint32_t number)
{
	return table_chunk(snapshot, number) * snapshot->chunk +
	       number % per_table(snapshot) / PER_SECTOR;
}

/* How many copies there is room for. The header and each table take a chunk. */
static uint32_t room_of(const struct snapshot *snapshot)
{
	uint64_t chunks = divide64(snapshot->store->sectors, snapshot->chunk, NULL);
	uint32_t left;

	if (chunks < 3)
		return 0;
	uint64_t full = divide64(chunks - 1, per_table(snapshot) + 1, &left);
	uint64_t room = full * per_table(snapshot) + (left ? left - 1 : 0);

	return room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
}

/* ---- on the store ---- */

/* A write that is safe from a power cut when it returns 0. */
static int write_forced(struct snapshot *snapshot, uint64_t lba, const void *sector)
{
	struct block_request request = { .device = snapshot->store,
					 .lba = lba,
					 .count = 1,
					 .buffer = (void *)sector,
					 .operation = 'W',
					 .is_forced = true,
					 .purpose = BLOCK_MAPPING };

	block_submit(&request);
	return block_wait(&request);
}

/* The rest of a chunk of the table, from a sector on, gets no entries. */
static int clear_from(struct snapshot *snapshot, uint64_t lba)
{
	unsigned count = snapshot->chunk - (lba & (snapshot->chunk - 1));

	memset(snapshot->copy, 0, count * SECTOR_SIZE);
	return block_write(snapshot->store, lba, count, snapshot->copy, BLOCK_MAPPING);
}

int snapshot_invalidate(struct snapshot *snapshot, const char *why, int error)
{
	if (error && !snapshot->failure) {
		snapshot->failure = why;
		printk("%s: the snapshot of %s is invalid: %s (%s: %s)\n", snapshot->name,
		       snapshot->origin->name, why, snapshot->store->name, errno_name(-error));
		snapshot_store_mark(snapshot, false);
	}
	return error;
}

int exception_commit(struct snapshot *snapshot)
{
	if (!snapshot->is_changed || !snapshot->is_persistent)
		return 0;
	int error = block_flush(snapshot->store)
			?: write_forced(snapshot, entry_lba(snapshot, snapshot->count - 1),
					snapshot->sector);

	snapshot->is_changed = error != 0;
	return snapshot_invalidate(snapshot, "its table failed", error);
}

/* The next table is cleared before the last entry of this one leads there. */
int exception_add(struct snapshot *snapshot, uint32_t chunk)
{
	uint32_t number = snapshot->count, place = number % PER_SECTOR;
	int error = insert_exception(snapshot, chunk);

	if (error || !snapshot->is_persistent)
		return snapshot_invalidate(snapshot, "its table failed", error);
	if ((number + 1) % per_table(snapshot) == 0 && number + 1 < snapshot->room)
		error = clear_from(snapshot, entry_lba(snapshot, number + 1));
	if (place == 0)
		memset(snapshot->sector, 0, SECTOR_SIZE);
	snapshot->sector[place] = (struct table_entry){ chunk, copy_chunk(snapshot, number) };
	snapshot->is_changed = true;
	snapshot_invalidate(snapshot, "its table failed", error);
	return error || place < PER_SECTOR - 1 ? error : exception_commit(snapshot);
}

int snapshot_store_mark(struct snapshot *snapshot, bool is_lost)
{
	const struct header header = { .magic = is_lost ? 0 : MAGIC,
				       .is_valid = !snapshot->failure,
				       .version = VERSION,
				       .chunk = snapshot->chunk,
				       .origin_sectors = snapshot->origin->sectors };

	return snapshot->is_persistent ? write_forced(snapshot, 0, &header) : 0;
}

/* ---- opening ---- */

static int refuse_store(const struct snapshot *snapshot, const char *why, int error)
{
	printk("%s: snapshot of %s on %s: %s\n", snapshot->name, snapshot->origin->name,
	       snapshot->store->name, why);
	return error;
}

static bool is_chunk(uint32_t sectors)
{
	return sectors >= SNAPSHOT_CHUNK_LEAST && sectors <= SNAPSHOT_CHUNK_MOST &&
	       !(sectors & (sectors - 1));
}

/* As many chains as there may be exceptions, or BUCKETS_MOST: a chain is short. */
static int allocate_tables(struct snapshot *snapshot)
{
	uint32_t buckets = 64;

	if (!is_chunk(snapshot->chunk))
		return refuse_store(snapshot, "a chunk must be 8, 16, 32, 64, 128 or 256 sectors",
				    -EINVAL);
	if (divide64(snapshot->origin->sectors, snapshot->chunk, NULL) >= UINT32_MAX)
		return refuse_store(snapshot, "the drive has too many chunks", -EFBIG);
	snapshot->room = room_of(snapshot);
	if (snapshot->room == 0)
		return refuse_store(snapshot, "the store has no room for three chunks", -ENOSPC);
	while (buckets < snapshot->room && buckets < BUCKETS_MOST)
		buckets *= 2;
	snapshot->bucket_mask = buckets - 1;
	snapshot->buckets = kmalloc(buckets * sizeof(*snapshot->buckets));
	snapshot->copy = kmalloc(snapshot->chunk * SECTOR_SIZE);
	if (!snapshot->buckets || !snapshot->copy)
		return refuse_store(snapshot, "no memory", -ENOMEM);
	memset(snapshot->buckets, 0, buckets * sizeof(*snapshot->buckets));
	return 0;
}

/* One entry as the store has it: 1 for the end, 0 for one more, or an error. */
static int accept_entry(struct snapshot *snapshot, const struct table_entry *entry)
{
	uint64_t last = divide64(snapshot->origin->sectors - 1, snapshot->chunk, NULL);

	if (entry->copy == 0)
		return 1;
	if (entry->copy != copy_chunk(snapshot, snapshot->count) || entry->chunk > last ||
	    exception_find(snapshot, (uint32_t)entry->chunk))
		return refuse_store(snapshot, "its table is damaged", -EUCLEAN);
	return insert_exception(snapshot, (uint32_t)entry->chunk);
}

/* All sectors of the table up to its end. What follows the end is cleared: entries that a power cut
 * has left there must not continue the table one day. */
static int read_exceptions(struct snapshot *snapshot)
{
	int result = 0;

	while (result == 0 && snapshot->count < snapshot->room) {
		uint64_t lba = entry_lba(snapshot, snapshot->count);

		result = block_read(snapshot->store, lba, 1, snapshot->sector, BLOCK_MAPPING);
		for (unsigned i = 0; result == 0 && i < PER_SECTOR; i++)
			result = accept_entry(snapshot, &snapshot->sector[i]);
		if (result == 1 && (lba + 1) & (snapshot->chunk - 1))
			result = clear_from(snapshot, lba + 1) ?: 1;
	}
	return result < 0 ? result : 0;
}

/* Goes on with a table that is there. */
static int resume_store(struct snapshot *snapshot, const struct header *header)
{
	if (!header->is_valid || header->version != VERSION || !is_chunk(header->chunk))
		return refuse_store(snapshot, "the store's snapshot is invalid", -EUCLEAN);
	if (header->origin_sectors != snapshot->origin->sectors)
		return refuse_store(snapshot, "the store is another drive's", -EUCLEAN);
	if (snapshot->chunk && snapshot->chunk != header->chunk)
		return refuse_store(snapshot, "the store has chunks of another size", -EINVAL);
	snapshot->chunk = header->chunk;
	return allocate_tables(snapshot) ?: read_exceptions(snapshot);
}

/* The header is last: a power cut before it leaves no snapshot. */
static int begin_store(struct snapshot *snapshot)
{
	if (!snapshot->chunk)
		snapshot->chunk = SNAPSHOT_CHUNK;
	int error = allocate_tables(snapshot);

	if (error || !snapshot->is_persistent)
		return error;
	return clear_from(snapshot, entry_lba(snapshot, 0))
		       ?: block_flush(snapshot->store)
		       ?: snapshot_store_mark(snapshot, false);
}

/* A store that has a table is continued, if the table is to be kept; any other is begun. */
int snapshot_store_open(struct snapshot *snapshot)
{
	struct header header;
	int error = block_read(snapshot->store, 0, 1, &header, BLOCK_MAPPING);

	if (!error && snapshot->is_persistent && header.magic == MAGIC)
		error = resume_store(snapshot, &header);
	else if (!error)
		error = begin_store(snapshot);
	if (error)
		snapshot_store_close(snapshot);
	return error;
}
