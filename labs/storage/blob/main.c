/*
 * blob: a blob store for experiments, and the same objects as files of their own.
 *
 *	blob fill STORE OBJECTS			makes a store with objects 0, 1, ...
 *	blob get STORE OBJECTS COUNT SEED [BATCH FIRST]
 *						reads objects at random
 *	blob delete STORE OBJECTS PERCENT SEED	deletes some
 *	blob compact STORE
 *	blob save STORE INDEX			writes the index to a file
 *	blob open STORE [INDEX]			opens it, and says what is in it
 *	blob files FOLDER OBJECTS		a file for each object, 100 in a folder
 *	blob readfiles FOLDER OBJECTS COUNT SEED [BATCH FIRST]
 *
 * STORE is a file of the store's size, or a drive; its contents are destroyed by fill. With -d as
 * the first word the page cache is passed by. After each BATCH reads a sector of /dev/hda is read,
 * at 64 KiB * FIRST, and then at the next ones: a mark in the list of the requests.
 *
 * An object has 2,200 to 6,600 bytes, 4,400 on average, as published; they follow from its number.
 * With "-l BYTES" before the command each has as many, at most 64 KiB.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "labs/storage/blob/blob.h"

#define LEAST	   2200u
#define MOST	   6600u
#define PER_FOLDER 100u
#define MARK	   65536u
#define SYNC_EVERY 1000u
#define LONGEST	   65536u

static uint8_t object[LONGEST], wanted[LONGEST];
static uint64_t state;
static uint32_t fixed_length;
static bool direct;

static void __attribute__((noreturn)) fail(const char *what, int error)
{
	fprintf(stderr, "blob: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(1);
}

static uint32_t below(uint32_t limit)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % limit;
}

static uint32_t fill_object(uint8_t *to, uint32_t key)
{
	uint32_t length = fixed_length;

	if (!length)
		length = LEAST + (key * 2654435761u >> 7) % (MOST - LEAST + 1);
	for (uint32_t i = 0; i < length; i++)
		to[i] = (uint8_t)(key + 31 * i);
	return length;
}

static void check_object(uint32_t key, int64_t length)
{
	if (length != fill_object(wanted, key) || memcmp(object, wanted, (size_t)length) != 0)
		fail("an object has other contents", EIO);
}

static struct blob_device *device_of(const char *path)
{
	struct blob_device *device;
	int error = blob_device_open(path, direct, &device);

	if (error)
		fail(path, error);
	return device;
}

static struct blob_store *store_of(const char *path)
{
	struct blob_store *store;
	int error = blob_open(device_of(path), &store);

	if (error)
		fail(path, error);
	return store;
}

static void mark(uint32_t number)
{
	uint8_t sector[BLOB_SECTOR];
	int file = open("/dev/hda", O_RDONLY);

	if (file < 0 || pread(file, sector, sizeof(sector), (off_t)number * MARK) < 0)
		fail("/dev/hda", errno);
	close(file);
}

static void must(int error, const char *what)
{
	if (error < 0)
		fail(what, error);
}

static void fill(const char *path, uint32_t objects)
{
	must(blob_format(device_of(path)), path);
	struct blob_store *store = store_of(path);

	for (uint32_t key = 0; key < objects; key++) {
		must(blob_put(store, key, object, fill_object(object, key)), "put");
		if (key % SYNC_EVERY == 0)
			must(blob_sync(store), "sync");
	}
	must(blob_sync(store), "sync");
}

static void delete_some(const char *path, uint32_t objects, uint32_t percent)
{
	struct blob_store *store = store_of(path);

	for (uint32_t key = 0; key < objects; key++)
		if (below(100) < percent && blob_length(store, key) >= 0)
			must(blob_delete(store, key), "delete");
	must(blob_sync(store), "sync");
}

static void show(const char *path, const char *index)
{
	struct blob_device *device = device_of(path);
	struct blob_figures figures;
	struct blob_store *store;

	must(blob_open_indexed(device, index ? device_of(index) : NULL, &store), path);
	blob_count(store, &figures);
	printf("objects %llu live %llu log %llu area %llu walked %llu\n",
	       (unsigned long long)figures.objects, (unsigned long long)figures.live_bytes,
	       (unsigned long long)figures.log_bytes, (unsigned long long)figures.area_bytes,
	       (unsigned long long)figures.walked);
}

static char *file_name(const char *folder, uint32_t key)
{
	static char name[4096];

	snprintf(name, sizeof(name), "%s/%04u/%08u", folder, key / PER_FOLDER, key);
	return name;
}

static void make_files(const char *folder, uint32_t objects)
{
	for (uint32_t key = 0; key < objects; key++) {
		char *name = file_name(folder, key);
		uint32_t length = fill_object(object, key);

		if (key % PER_FOLDER == 0) {
			char *end = strrchr(name, '/');

			*end = 0;
			if (mkdir(name, 0755) < 0 && errno != EEXIST)
				fail(name, errno);
			*end = '/';
		}
		int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

		if (file < 0 || write(file, object, length) != (ssize_t)length)
			fail(name, errno);
		close(file);
	}
}

static int64_t read_file(const char *folder, uint32_t key)
{
	int file = open(file_name(folder, key), O_RDONLY);
	ssize_t length = file < 0 ? -1 : read(file, object, sizeof(object));

	if (length < 0)
		fail(file_name(folder, key), errno);
	close(file);
	return length;
}

/* store is NULL for files. */
static void get(struct blob_store *store, const char *folder, uint32_t objects, uint32_t count,
		uint32_t batch, uint32_t first)
{
	if (batch)
		mark(first);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t key = below(objects);
		int64_t length =
		    store ? blob_get(store, key, object, sizeof(object)) : read_file(folder, key);

		if (length != -ENOENT)
			check_object(key, length);
		if (batch && (i + 1) % batch == 0)
			mark(first + (i + 1) / batch);
	}
}

int main(int count, char **words)
{
	if (count > 1 && strcmp(words[1], "-d") == 0) {
		direct = true;
		words++;
		count--;
	}
	if (count > 2 && strcmp(words[1], "-l") == 0) {
		fixed_length = (uint32_t)strtoul(words[2], NULL, 0);
		if (fixed_length < 1 || fixed_length > LONGEST) {
			fprintf(stderr, "blob: -l wants 1 to %u bytes, not %s\n", LONGEST,
				words[2]);
			return 2;
		}
		words += 2;
		count -= 2;
	}
	const char *command = count > 2 ? words[1] : "";
	uint32_t number[5] = { 0 };

	for (int i = 0; i < 5 && 3 + i < count; i++)
		number[i] = (uint32_t)strtoul(words[3 + i], NULL, 0);
	state = number[2];
	if (strcmp(command, "fill") == 0)
		fill(words[2], number[0]);
	else if (strcmp(command, "delete") == 0)
		delete_some(words[2], number[0], number[1]);
	else if (strcmp(command, "compact") == 0)
		must(blob_compact(store_of(words[2])), "compact");
	else if (strcmp(command, "save") == 0 && count > 3)
		must(blob_save(store_of(words[2]), device_of(words[3])), words[3]);
	else if (strcmp(command, "open") == 0)
		show(words[2], count > 3 ? words[3] : NULL);
	else if (strcmp(command, "files") == 0)
		make_files(words[2], number[0]);
	else if (strcmp(command, "get") == 0 && number[0])
		get(store_of(words[2]), NULL, number[0], number[1], number[3], number[4]);
	else if (strcmp(command, "readfiles") == 0 && number[0])
		get(NULL, words[2], number[0], number[1], number[3], number[4]);
	else {
		fprintf(stderr,
			"usage: blob fill|get|delete|compact|save|open|files|readfiles ...\n"
			"       (labs/storage/blob/main.c)\n");
		return 2;
	}
	return 0;
}
