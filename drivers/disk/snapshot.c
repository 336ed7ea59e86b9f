/*
 * A snapshot of a drive, by copy on write:
 *
 *	origin		[a][b][c][d]		"c" is to be overwritten by "x":
 *	store		[c]			its copy goes to the store, with an exception 2 -> 0
 *	origin		[a][b][x][d]		then the origin is written
 *	snapshot	 a  b  c  d		chunk 2 from the store, the others from the origin
 *
 *	the snapshot is written		the store gets the chunk, the origin is not touched
 *	the chunk has its exception	one request more or less: none is copied twice
 *
 * A request of the snapshot waits in its origin's queue (drivers/disk/queue.c), so nothing can come
 * between the check of the table and the transfer, and of two that want to copy one chunk the
 * second one finds it copied. That needs no lock. The task that serves the queue may wait for the
 * store's queue, and never the other way round: a store is not an origin or a snapshot, nor a part
 * of one.
 *
 * When copying fails, the origin is written all the same: a backup must not stop what it is a
 * backup of. The snapshot is invalid then, which the console and the store's header say.
 */
#include "drivers/disk/snapshot.h"

#include "drivers/disk/block.h"
#include "drivers/disk/queue.h"
#include "kernel/lib/divide.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/report/printk.h"

#define MAJOR 253u /* of Linux's device-mapper, by default */

static struct snapshot snapshots[SNAPSHOTS];

static uint32_t chunk_of(const struct snapshot *snapshot, uint64_t lba)
{
	return (uint32_t)divide64(lba, snapshot->chunk, NULL);
}

/* ---- copying ---- */

/* Sectors of the origin, before all that waits in its queue. */
static int read_origin(struct snapshot *snapshot, uint64_t lba, unsigned count, void *to)
{
	struct block_request request = { .device = snapshot->origin,
					 .lba = lba,
					 .count = count,
					 .buffer = to,
					 .operation = 'R',
					 .purpose = BLOCK_DATA };

	return block_serve_inside(&request);
}

/* The chunk as the origin has it, into `copy`; the last one of a drive may be shorter. */
static int fetch_chunk(struct snapshot *snapshot, uint32_t chunk)
{
	uint64_t lba = (uint64_t)chunk * snapshot->chunk;
	uint64_t left = snapshot->origin->sectors - lba;

	return read_origin(snapshot, lba, left < snapshot->chunk ? left : snapshot->chunk,
			   snapshot->copy);
}

/* The chunk's new contents on the store, and its exception. */
static int store_chunk(struct snapshot *snapshot, uint32_t chunk, const void *contents)
{
	if (snapshot->count == snapshot->room)
		return -ENOSPC;
	int error = block_write(snapshot->store, exception_lba(snapshot, snapshot->count),
				snapshot->chunk, contents, BLOCK_DATA);

	return error ?: exception_add(snapshot, chunk);
}

/* The copy is on its way to the store; before_write makes it safe. */
static void keep_chunk(struct snapshot *snapshot, uint32_t chunk)
{
	const char *failure = "the drive could not be read";
	int error = fetch_chunk(snapshot, chunk);

	if (!error) {
		error = store_chunk(snapshot, chunk, snapshot->copy);
		failure = error == -ENOSPC ? "its store is full" : "its store failed";
	}
	if (error)
		snapshot_invalidate(snapshot, failure, error);
}

/* What has no copy yet gets one. */
static void before_write(struct block_device *drive, uint64_t lba, unsigned count)
{
	struct snapshot *snapshot = drive->snapshot;
	uint32_t last = chunk_of(snapshot, lba + count - 1);

	for (uint32_t chunk = chunk_of(snapshot, lba); chunk <= last; chunk++)
		if (!snapshot->failure && !exception_find(snapshot, chunk))
			keep_chunk(snapshot, chunk);
	if (!snapshot->failure)
		exception_commit(snapshot);
}

/* ---- the snapshot's own requests ---- */

/* How many of the next `count` sectors are in one place: on the origin (NULL), or at an
 * exception. */
static unsigned run_at(const struct snapshot *snapshot, uint64_t lba, unsigned count,
		       struct exception **found)
{
	unsigned run = snapshot->chunk - (lba & (snapshot->chunk - 1));
	uint32_t chunk = chunk_of(snapshot, lba);

	*found = exception_find(snapshot, chunk);
	while (!*found && run < count && !exception_find(snapshot, ++chunk))
		run += snapshot->chunk;
	return run < count ? run : count;
}

/* Sectors of a chunk that has an exception: they are on the store. */
static int move_copy(struct snapshot *snapshot, const struct exception *found, uint64_t lba,
		     unsigned count, uint8_t *buffer, bool is_write)
{
	uint64_t at = exception_lba(snapshot, found->number) + (lba & (snapshot->chunk - 1));

	return is_write ? block_write(snapshot->store, at, count, buffer, BLOCK_DATA)
			: block_read(snapshot->store, at, count, buffer, BLOCK_DATA);
}

/* A chunk that has no exception yet, or a part of one: then the rest of it is copied. */
static int write_new_chunk(struct snapshot *snapshot, uint64_t lba, unsigned count,
			   const uint8_t *buffer)
{
	uint32_t chunk = chunk_of(snapshot, lba);

	if (count == snapshot->chunk)
		return store_chunk(snapshot, chunk, buffer);
	int error = snapshot->count < snapshot->room ? fetch_chunk(snapshot, chunk) : -ENOSPC;

	if (error)
		return error;
	memcpy(snapshot->copy + (lba & (snapshot->chunk - 1)) * SECTOR_SIZE, buffer,
	       count * SECTOR_SIZE);
	return store_chunk(snapshot, chunk, snapshot->copy);
}

/* Run after run, each from the place where it is. A write makes a chunk's copy first, so it takes
 * one chunk at a time. */
static int move_piece(struct snapshot *snapshot, uint64_t lba, const struct block_piece *piece,
		      bool is_write)
{
	unsigned run;

	for (unsigned done = 0; done < piece->sectors; done += run, lba += run) {
		uint8_t *buffer = (uint8_t *)piece->buffer + done * SECTOR_SIZE;
		struct exception *found;
		unsigned in_chunk = snapshot->chunk - (lba & (snapshot->chunk - 1));

		run = run_at(snapshot, lba, piece->sectors - done, &found);
		if (is_write && run > in_chunk)
			run = in_chunk;
		int error = found      ? move_copy(snapshot, found, lba, run, buffer, is_write)
			    : is_write ? write_new_chunk(snapshot, lba, run, buffer)
				       : read_origin(snapshot, lba, run, buffer);

		if (error)
			return error;
	}
	return 0;
}

/* A store that is full fails this write with ENOSPC, and nothing else: all that the snapshot had is
 * still there. */
static int snapshot_transfer(struct block_device *device, const struct block_transfer *transfer)
{
	struct snapshot *snapshot = device->driver;
	uint64_t lba = transfer->lba;
	int error = snapshot->failure ? -EIO : 0;

	if (!snapshot->origin)
		return -ENXIO;
	for (unsigned i = 0; !error && i < transfer->piece_count; i++) {
		error = move_piece(snapshot, lba, &transfer->pieces[i], transfer->is_write);
		lba += transfer->pieces[i].sectors;
	}
	if (!snapshot->failure && exception_commit(snapshot))
		error = -EIO;
	if (!error && transfer->is_forced)
		error = block_flush(snapshot->store);
	return error;
}

/* ---- they come and go ---- */

static const struct block_ops snapshot_ops = { .transfer = snapshot_transfer };

/* Returns the error, after its reason: an errno alone says too little. */
static int refuse_it(const struct block_device *origin, const struct block_device *store,
		     const char *why, int error)
{
	printk("snapshot of %s on %s: %s\n", origin->name, store->name, why);
	return error;
}

/* The same device, or a drive and one of its partitions. */
static bool devices_overlap(struct block_device *one, struct block_device *other)
{
	return one == other || one->whole == other || other->whole == one;
}

/* May these two be what they are to be? */
static int check_snapshot(struct block_device *origin, struct block_device *store)
{
	if (origin->whole || origin->is_snapshot)
		return refuse_it(origin, store, "it is not a drive; only drives have snapshots",
				 -EINVAL);
	if (store->is_snapshot || block_drive(store) == origin)
		return refuse_it(origin, store, "the store must be on another drive", -EINVAL);
	if (origin->snapshot || block_drive(store)->snapshot)
		return refuse_it(origin, store, "the drive has a snapshot already", -EBUSY);
	for (unsigned i = 0; i < SNAPSHOTS; i++)
		if (snapshots[i].origin == origin)
			return refuse_it(origin, store, "its snapshot is being made", -EBUSY);
		else if (snapshots[i].origin && (devices_overlap(snapshots[i].store, store) ||
						 block_drive(snapshots[i].store) == origin))
			return refuse_it(origin, store, "the drive is a snapshot's store", -EBUSY);
	return 0;
}

/* A place without an origin. */
static struct snapshot *free_place(void)
{
	for (unsigned i = 0; i < SNAPSHOTS; i++)
		if (!snapshots[i].origin)
			return &snapshots[i];
	return NULL;
}

/* The device is registered once for a place, and stays. */
static void make_device(struct snapshot *snapshot, struct block_device *origin)
{
	struct block_device *device = &snapshot->device;
	bool is_new = !device->name;
	unsigned place = snapshot - snapshots;

	snprintk(snapshot->name, sizeof(snapshot->name), "dm-%u", place);
	device->name = snapshot->name;
	device->number = MAJOR << 8 | place;
	device->sectors = origin->sectors;
	device->ops = &snapshot_ops;
	device->driver = snapshot;
	device->queue = origin->queue;
	device->is_snapshot = true;
	device->is_rotational = origin->is_rotational;
	if (is_new)
		block_register(device);
}

int snapshot_create(struct block_device *origin, struct block_device *store, unsigned chunk,
		    bool is_persistent, struct snapshot **made)
{
	struct snapshot *snapshot = free_place();
	int error = check_snapshot(origin, store);

	if (error)
		return error;
	if (!snapshot)
		return refuse_it(origin, store, "there are two snapshots already", -EBUSY);
	snapshot->origin = origin;
	snapshot->store = store;
	snapshot->chunk = chunk;
	snapshot->is_persistent = is_persistent;
	snapshot->failure = NULL;
	snapshot->is_changed = false;
	error = snapshot_store_open(snapshot);
	if (error) {
		snapshot->origin = NULL;
		return error;
	}
	make_device(snapshot, origin);
	origin->snapshot = snapshot;
	origin->before_write = before_write;
	*made = snapshot;
	return 0;
}

/* The flush is a barrier: when it has ended, nobody uses the table any more, and who comes later
 * sees that the snapshot has failed. */
void snapshot_remove(struct snapshot *snapshot)
{
	snapshot->origin->before_write = NULL;
	snapshot->origin->snapshot = NULL;
	snapshot->failure = "it is removed";
	block_flush(snapshot->origin);
	if (snapshot_store_mark(snapshot, true))
		printk("%s: %s still says that it has a snapshot\n", snapshot->name,
		       snapshot->store->name);
	snapshot->origin = NULL;
	snapshot_store_close(snapshot);
}

/* For /proc and for the one that ends it by its name. NULL: nothing is there. */
struct snapshot *snapshot_at(unsigned place)
{
	struct snapshot *snapshot = &snapshots[place];

	return snapshot->origin && snapshot->origin->snapshot == snapshot ? snapshot : NULL;
}
