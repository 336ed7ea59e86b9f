/* Shared by the files of the blob store: log.c has the log, index.c the index in memory. */
#ifndef LABS_STORAGE_BLOB_INSIDE_H
#define LABS_STORAGE_BLOB_INSIDE_H

#include "fs/jbd2/checksum.h"
#include "labs/storage/blob/blob.h"

#define SUPER_STEP 4096u
#define LOG_START  (2 * SUPER_STEP)

/* What a device reads and writes past the page cache. */
#define ALIGNED __attribute__((aligned(BLOB_SECTOR)))

struct super {
	uint32_t magic, crc;
	uint64_t number, generation, session;
	uint32_t area, zero;
};

struct record {
	uint32_t magic, crc;
	uint64_t generation, session, offset, key;
	uint32_t length, flags;
};

/* An object in the index; offset 0 is a free slot, length UINT32_MAX a deleted one. */
struct entry {
	uint64_t key, offset;
	uint32_t length;
	uint32_t unused;
};

#define GONE UINT32_MAX

struct blob_store {
	struct blob_device *device;
	struct super super;
	struct entry *slots;
	uint32_t slot_count, taken; /* a power of 2; slots that are not free */
	uint64_t tail;		    /* where the next record goes */
	uint64_t last_session;	    /* of the last record */
	int error;		    /* why nothing can be changed any more; 0 */
	struct blob_figures figures;
	uint8_t *ahead; /* what the walk has read */
	uint64_t ahead_at;
	uint32_t ahead_length;
	int ahead_error; /* of that; 0 */
};

/* CRC-32C, inverted at both ends, continued from `crc`; 0 to begin. No data may be NULL. */
static inline uint32_t blob_crc32c(uint32_t crc, const void *data, uint64_t length)
{
	return length == 0 ? crc : ~crc32c(~crc, data, (size_t)length);
}

/* Makes room for one entry more. -ENOMEM. */
int blob_grow(struct blob_store *store);

/* NULL if the object is not there. */
struct entry *blob_find(const struct blob_store *store, uint64_t key);

/* The object of a key is here from now on; length GONE: there is none. -ENOMEM. */
int blob_set_entry(struct blob_store *store, uint64_t key, uint64_t offset, uint32_t length);

/* Takes the entries of a saved index. An index that does not fit changes nothing. */
void blob_load_index(struct blob_store *store, struct blob_device *index);

static inline uint64_t in_sectors(uint64_t length)
{
	return (length + BLOB_SECTOR - 1) / BLOB_SECTOR * BLOB_SECTOR;
}

static inline uint64_t record_bytes(uint32_t length)
{
	return in_sectors(sizeof(struct record) + (uint64_t)length);
}

static inline uint64_t area_bytes(const struct blob_device *device)
{
	return (device->size - LOG_START) / 2 / SUPER_STEP * SUPER_STEP;
}

static inline uint64_t area_start(const struct blob_device *device, uint32_t area)
{
	return LOG_START + area * area_bytes(device);
}

static inline uint64_t area_end(const struct blob_store *store)
{
	return area_start(store->device, store->super.area) + area_bytes(store->device);
}

#endif
