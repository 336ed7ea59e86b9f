/*
 * The blob store: a log of records in one half of the device, and an index of it in memory.
 *
 *	bytes 0		4096		8192	    half		    end
 *	[super A]	[super B]	[area 0 ...][area 1 ...............]
 *	area:		[record][record][record][torn]....old records
 *	record:		head (48 bytes), data, zeros up to a sector
 *
 * A put appends a record, a delete appends one without data, and nothing is changed in place. To
 * open, the log is walked from its beginning to the first record that is not whole. Compaction
 * copies the live records to the other area, and then one sector, a superblock, makes that area the
 * log: before it is on the disk the old log is valid, after it the new one.
 *
 * What could go wrong, and why it does not:
 *
 *   torn record		its checksum is over head and data: the log ends before it
 *   old records after the end	they have another generation (the session of the compaction) or a
 *				lower session than the record before them. Each open and each
 *				compaction takes a new session, which is on the disk before the
 *				first record of it. A new store begins with a generation and a
 *				session drawn at random: whatever store was here before, and
 *				whatever is left of its superblocks, it had others
 *   torn superblock		the two take turns, and each has a checksum and a number
 *
 * The second one is the subtle one. A record that was never acknowledged may be on the disk after
 * one that is lost. If the next session fills that gap with a record of the same length, the old
 * one would be reachable again, a delete for instance; its session is too low.
 *
 * Numbers are in the machine's byte order: all machines of the lab are little-endian.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "labs/storage/blob/inside.h"

/* EXERCISE S9 (a store for blobs): what is written, in which order, and how much of it is believed
 * after a power cut. The opening has the format and three dangers; inside.h has the structures. The
 * drive keeps what it is given in a cache and writes it in any order, by sectors, until
 * device->sync. Any call of the device may fail; then the function returns that error, and what was
 * synced before is safe all the same. A drive may be larger than 4 GiB. What a function allocates
 * for itself it frees, after an error, too. */

#define SUPER_MAGIC  0x626f6c62u
#define RECORD_MAGIC 0x6a626f62u
#define DELETED	     1u
#define READ_AHEAD   (256u << 10) /* bytes that the walk reads at once */

/* --- superblocks --- */

static uint32_t super_crc(struct super super)
{
	super.crc = 0;
	return blob_crc32c(0, &super, sizeof(super));
}

/* Writes a superblock over the older one of the two, with the next number. What was written before
 * is on the disk before it, and it is on the disk when this returns 0. */
/* SOLUTION S9 { */
static int write_super(struct blob_device *device, struct super *super)
{
	ALIGNED uint8_t sector[BLOB_SECTOR] = { 0 };
	int error = device->sync(device);

	super->magic = SUPER_MAGIC;
	super->number++;
	super->crc = super_crc(*super);
	memcpy(sector, super, sizeof(*super));
	if (!error)
		error = device->write(device, super->number % 2 * SUPER_STEP, sector, BLOB_SECTOR);
	return error ? error : device->sync(device);
}
/* } SOLUTION S9 */

/* Takes the next session; an error leaves the store in the one it had. */
static int new_session(struct blob_store *store)
{
	struct super next = store->super;

	next.session++;
	int error = write_super(store->device, &next);

	if (!error)
		store->super = next;
	return error;
}

static int read_super(struct blob_device *device, struct super *best)
{
	ALIGNED uint8_t sector[BLOB_SECTOR];

	best->number = 0;
	for (unsigned i = 0; i < 2; i++) {
		struct super super;
		int error = device->read(device, i * SUPER_STEP, sector, BLOB_SECTOR);

		if (error)
			return error;
		memcpy(&super, sector, sizeof(super));
		if (super.magic == SUPER_MAGIC && super.crc == super_crc(super) && super.area < 2 &&
		    super.number > best->number)
			*best = super;
	}
	return best->number ? 0 : -EINVAL;
}

int blob_format(struct blob_device *device)
{
	struct super super = { 0 }, old;

	if (device->size < LOG_START + 4 * SUPER_STEP)
		return -ENOSPC;
	int error = read_super(device, &old);

	if (error && error != -EINVAL)
		return error;
	super.number = old.number; /* 0: there is no older store */
	if (getentropy(&super.generation, sizeof(super.generation)) < 0)
		return -errno;
	super.generation >>= 1; /* so that sessions never wrap */
	super.session = super.generation;
	return write_super(device, &super);
}

/* --- records --- */

static uint32_t record_crc(struct record record, const void *data)
{
	record.crc = 0;
	return blob_crc32c(blob_crc32c(0, &record, sizeof(record)), data, record.length);
}

/* The log's bytes from here on, at least `length` of them; NULL at the area's end, or for an error,
 * which is in store->ahead_error. */
static const uint8_t *look_at(struct blob_store *store, uint64_t offset, uint64_t length)
{
	uint64_t end = area_end(store), want = length > READ_AHEAD ? length : READ_AHEAD;

	if (offset + length > end)
		return NULL;
	if (store->ahead && offset >= store->ahead_at &&
	    offset + length <= store->ahead_at + store->ahead_length)
		return store->ahead + (offset - store->ahead_at);
	if (want > end - offset)
		want = end - offset;
	uint64_t ahead_end = store->ahead_at + store->ahead_length, kept = 0;
	uint8_t *bytes;

	store->ahead_error = -ENOMEM;
	if (posix_memalign((void **)&bytes, SUPER_STEP, want) != 0)
		return NULL;
	if (store->ahead && offset >= store->ahead_at && offset < ahead_end) {
		kept = ahead_end - offset;
		memcpy(bytes, store->ahead + (offset - store->ahead_at), kept);
	}
	free(store->ahead);
	store->ahead = bytes;
	store->ahead_at = offset;
	store->ahead_length = want;
	store->ahead_error =
	    store->device->read(store->device, offset + kept, bytes + kept, want - kept);
	return store->ahead_error ? NULL : bytes;
}

/* Is there a record of this log at the tail, as a whole? Nothing in it is believed before: what is
 * there may be torn, older, or anything else. look_at has its bytes. */
/* SOLUTION S9 { */
static bool next_record(struct blob_store *store, struct record *record)
{
	const uint8_t *bytes = look_at(store, store->tail, BLOB_SECTOR);

	if (!bytes)
		return false;
	memcpy(record, bytes, sizeof(*record));
	if (record->magic != RECORD_MAGIC || record->generation != store->super.generation ||
	    record->offset != store->tail || record->session < store->last_session ||
	    record->length > BLOB_MAX)
		return false;
	bytes = look_at(store, store->tail, record_bytes(record->length));
	return bytes && record->crc == record_crc(*record, bytes + sizeof(*record));
}

/* } SOLUTION S9 */

/* From the tail, which is the log's beginning or what a saved index says, to the log's end: an
 * entry for each record's object. Then the tail is where the next record goes, and last_session
 * that of the last record. What cannot be read is not the log's end: the next record would go over
 * it. */
static int walk(struct blob_store *store)
{
	/* SOLUTION S9 { */
	struct record record;
	int error = 0;

	while (!error && next_record(store, &record)) {
		error = blob_set_entry(store, record.key, record.offset,
				       record.flags & DELETED ? GONE : record.length);
		store->last_session = record.session;
		store->tail += record_bytes(record.length);
		store->figures.walked++;
	}
	free(store->ahead);
	store->ahead = NULL;
	return error ? error : store->ahead_error;
	/* } SOLUTION S9 */
}

/* Appends a record, in one write, with zeros up to a sector; returns where, or -errno. -EFBIG: more
 * than BLOB_MAX; -ENOSPC: not in this area. After an error the log is as it was. */
static int64_t append(struct blob_store *store, uint64_t key, const void *data, uint32_t length,
		      uint32_t flags)
{
	/* SOLUTION S9 { */
	uint64_t size = record_bytes(length), at = store->tail;
	struct record record = {
		RECORD_MAGIC, 0,    store->super.generation, store->super.session, at, key,
		length,	      flags
	};
	uint8_t *bytes;

	if (store->error)
		return store->error;
	if (length > BLOB_MAX)
		return -EFBIG;
	if (at + size > area_end(store))
		return -ENOSPC;
	if (posix_memalign((void **)&bytes, SUPER_STEP, size) != 0)
		return -ENOMEM;
	memset(bytes, 0, size);
	record.crc = record_crc(record, data);
	memcpy(bytes, &record, sizeof(record));
	memcpy(bytes + sizeof(record), data, length);
	int error = store->device->write(store->device, at, bytes, size);

	free(bytes);
	if (error)
		return error;
	store->tail += size;
	return at;
	/* } SOLUTION S9 */
}

/* Reads the record of an entry; the caller frees *bytes. */
static int read_record(struct blob_store *store, const struct entry *entry, uint8_t **bytes)
{
	struct record record;
	uint64_t size = record_bytes(entry->length);

	if (posix_memalign((void **)bytes, SUPER_STEP, size) != 0)
		return -ENOMEM;
	int error = store->device->read(store->device, entry->offset, *bytes, size);

	memcpy(&record, *bytes, sizeof(record));
	if (!error && (record.key != entry->key || record.length != entry->length ||
		       record.crc != record_crc(record, *bytes + sizeof(record))))
		error = -EIO;
	if (error)
		free(*bytes);
	return error;
}

/* --- the store --- */

int blob_open_indexed(struct blob_device *device, struct blob_device *index,
		      struct blob_store **opened)
{
	struct blob_store *store = calloc(1, sizeof(*store));

	if (!store)
		return -ENOMEM;
	store->device = device;
	int error = read_super(device, &store->super);

	if (!error)
		error = blob_grow(store);
	if (!error) {
		store->tail = area_start(device, store->super.area);
		if (index)
			blob_load_index(store, index);
		error = walk(store);
	}
	if (!error)
		error = new_session(store);
	if (error)
		blob_close(store);
	else
		*opened = store;
	return error;
}

int blob_open(struct blob_device *device, struct blob_store **store)
{
	return blob_open_indexed(device, NULL, store);
}

void blob_close(struct blob_store *store)
{
	free(store->slots);
	free(store->ahead);
	free(store);
}

int64_t blob_length(struct blob_store *store, uint64_t key)
{
	const struct entry *entry = blob_find(store, key);

	return entry ? (int64_t)entry->length : -ENOENT;
}

int64_t blob_get(struct blob_store *store, uint64_t key, void *to, uint32_t room)
{
	const struct entry *entry = blob_find(store, key);
	uint8_t *bytes;

	if (!entry)
		return -ENOENT;
	if (entry->length > room)
		return -EINVAL;
	int error = read_record(store, entry, &bytes);

	if (error)
		return error;
	memcpy(to, bytes + sizeof(struct record), entry->length);
	free(bytes);
	return entry->length;
}

int blob_put(struct blob_store *store, uint64_t key, const void *from, uint32_t length)
{
	int64_t at = append(store, key, from, length, 0);

	return at < 0 ? (int)at : blob_set_entry(store, key, at, length);
}

int blob_delete(struct blob_store *store, uint64_t key)
{
	/* SOLUTION S9 { */
	if (!blob_find(store, key))
		return -ENOENT;
	int64_t at = append(store, key, "", 0, DELETED);

	return at < 0 ? (int)at : blob_set_entry(store, key, at, GONE);
	/* } SOLUTION S9 */
}

int blob_sync(struct blob_store *store)
{
	return store->error ? store->error : store->device->sync(store->device);
}

/* Appends a copy of a live record to the log that `store` is. */
static int copy_record(struct blob_store *store, struct blob_store *from, const struct entry *entry)
{
	uint8_t *bytes;
	int error = read_record(from, entry, &bytes);

	if (error)
		return error;
	error = blob_put(store, entry->key, bytes + sizeof(struct record), entry->length);
	free(bytes);
	return error;
}

static int by_place(const void *one, const void *other)
{
	const struct entry *a = one, *b = other;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* In the order of the old log, so that both are read and written in one pass. An error leaves the
 * store in the old log. Only if the last superblock fails nobody knows which log is valid: then the
 * store takes no more changes (`error`), and the next one to open it sees. */
int blob_compact(struct blob_store *store)
{
	/* SOLUTION S9 { */
	struct entry *entries = malloc(store->slot_count * sizeof(*entries));
	int error = store->error ? store->error : entries ? new_session(store) : -ENOMEM;
	struct blob_store new = { .device = store->device, .super = store->super };

	new.super.area ^= 1;
	new.super.generation = new.super.session; /* of this attempt, and of no other */
	new.tail = area_start(new.device, new.super.area);
	if (!error)
		error = blob_grow(&new);
	if (!error) {
		memcpy(entries, store->slots, store->slot_count * sizeof(*entries));
		qsort(entries, store->slot_count, sizeof(*entries), by_place);
	}
	for (uint32_t i = 0; !error && i < store->slot_count; i++)
		if (entries[i].offset && entries[i].length != GONE)
			error = copy_record(&new, store, &entries[i]);
	free(entries);
	if (!error)
		error = store->error = write_super(new.device, &new.super);
	if (error) {
		free(new.slots);
		return error;
	}
	free(store->slots);
	*store = new;
	return 0;
	/* } SOLUTION S9 */
}

void blob_count(const struct blob_store *store, struct blob_figures *figures)
{
	*figures = store->figures;
	figures->log_bytes = store->tail - area_start(store->device, store->super.area);
	figures->area_bytes = area_bytes(store->device);
}
