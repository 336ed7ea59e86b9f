/*
 * A store for blobs: objects of some bytes, each by a number, in one file or on a raw drive.
 *
 *	struct blob_store *store;
 *	int error = blob_open(&device, &store);
 *
 *	blob_put(store, 17, "hello", 5);
 *	blob_sync(store);		now it is safe
 *	blob_close(store);
 *
 * Whatever blob_sync has returned 0 for survives a power cut at any time; what was not synced yet
 * is there as a whole or not at all. Functions return 0 or more, or -errno. One thread.
 */
#ifndef LABS_STORAGE_BLOB_H
#define LABS_STORAGE_BLOB_H

#include <stdbool.h>
#include <stdint.h>

#define BLOB_SECTOR 512u
#define BLOB_MAX    (64u << 20) /* bytes of an object */

/* Where the store is: a drive that may keep what is written in a cache until `sync`, and then
 * writes it in any order. Offsets and lengths are multiples of BLOB_SECTOR; each returns 0 or
 * -errno. */
struct blob_device {
	int (*read)(struct blob_device *device, uint64_t offset, void *to, uint32_t length);
	int (*write)(struct blob_device *device, uint64_t offset, const void *from,
		     uint32_t length);
	int (*sync)(struct blob_device *device);
	uint64_t size; /* bytes */
};

struct blob_store;

struct blob_figures {
	uint64_t objects, live_bytes, log_bytes, area_bytes, walked; /* walked: records, to open */
};

/* Makes an empty store. -ENOSPC for a device that is too small. */
int blob_format(struct blob_device *device);

/* Finds the store's objects: a walk over the log. The device must live until blob_close. */
int blob_open(struct blob_device *device, struct blob_store **store);

/* The same with an index that blob_save made: only what is newer is walked. An index that does not
 * fit this store is passed over. */
int blob_open_indexed(struct blob_device *device, struct blob_device *index,
		      struct blob_store **store);

/* Forgets the store in memory. What is not synced may be lost. */
void blob_close(struct blob_store *store);

/* An object's length; -ENOENT. */
int64_t blob_length(struct blob_store *store, uint64_t key);

/* Reads an object of at most `room` bytes; returns its length. -EIO if it is damaged. */
int64_t blob_get(struct blob_store *store, uint64_t key, void *to, uint32_t room);

/* Stores or replaces an object. -ENOSPC: blob_compact may help. */
int blob_put(struct blob_store *store, uint64_t key, const void *from, uint32_t length);

/* -ENOENT if there is none. */
int blob_delete(struct blob_store *store, uint64_t key);

/* Everything before is safe when it returns 0. */
int blob_sync(struct blob_store *store);

/* Copies the live objects to the other half, which is the log from then on. Syncs. After an error
 * of the device the old half is the log still; or, if it came with the last step, nothing can be
 * changed until the store is opened again. */
int blob_compact(struct blob_store *store);

/* Writes the index to a device of its own, and syncs both. */
int blob_save(struct blob_store *store, struct blob_device *index);

void blob_count(const struct blob_store *store, struct blob_figures *figures);

/* A device that is a file or a drive of this machine. `direct`: past the page cache. */
int blob_device_open(const char *path, bool direct, struct blob_device **device);
void blob_device_close(struct blob_device *device);

#endif
