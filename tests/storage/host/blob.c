/*
 * Works with a blob store (labs/storage/blob/log.c) on this computer. What it is to do, and the
 * store's drives, are in tests/storage/blob.py, which is asked for each call of a drive. So a store
 * has nothing to keep an object in but what it has written to a drive. Drive 0 has the store, drive
 * 1 a saved index.
 *
 *	r DRIVE OFFSET LENGTH	read: ERROR BYTES
 *	w DRIVE OFFSET BYTES	write: ERROR
 *	s DRIVE			sync: ERROR
 *	n RESULT BYTES		what the last command returned; the next command:
 *		drives SIZE SIZE, format, open, indexed (opens with drive 1), close,
 *		put KEY BYTES, huge KEY (more than BLOB_MAX bytes), get KEY ROOM, length KEY,
 *		delete KEY, sync, compact, save (the index), count (BYTES: struct blob_figures),
 *		end; close returns how many bytes are allocated yet, of those since open
 *
 * Bytes are in hexadecimal, those that come with "." at their end; an error is 0 or a negative
 * errno.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "labs/storage/blob/blob.h"
#include "tests/host/question.h"
#include "tests/storage/host/asked.h"

#define DRIVES	2u
#define COMMAND 64u /* bytes that a command itself may take */

static struct blob_device drives[DRIVES];
static struct blob_store *store;
static size_t at_open; /* allocated bytes */

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

/* Where nobody counts them there are none. */
static size_t allocated(void)
{
	return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes()
						       : 0;
}

/* --- the drives --- */

static unsigned number_of(const struct blob_device *device)
{
	return (unsigned)(device - drives);
}

static int drive_read(struct blob_device *device, uint64_t offset, void *to, uint32_t length)
{
	const char *line = ask("r %u %" PRIu64 " %" PRIu32, number_of(device), offset, length);
	char *bytes;
	int error = (int)strtol(line, &bytes, 10);

	if (error == 0)
		take_hex(to, length, bytes + 1);
	return error;
}

static int drive_write(struct blob_device *device, uint64_t offset, const void *from,
		       uint32_t length)
{
	char words[64];

	snprintf(words, sizeof(words), "w %u %" PRIu64, number_of(device), offset);
	return atoi(ask_with(words, from, length));
}

static int drive_sync(struct blob_device *device)
{
	return atoi(ask("s %u", number_of(device)));
}

/* --- commands --- */

static void make_drives(const char *sizes)
{
	char *at = (char *)sizes;

	for (unsigned i = 0; i < DRIVES; i++)
		drives[i] = (struct blob_device){ drive_read, drive_write, drive_sync,
						  strtoull(at, &at, 10) };
}

/* What a get leaves beyond the object's end, or beyond `room`, is not told. */
static int64_t get(uint64_t key, uint32_t room, uint8_t **found)
{
	*found = malloc(room);
	int64_t length = blob_get(store, key, *found, room);

	return length > room ? -EOVERFLOW : length;
}

static int64_t put(uint64_t key, const char *hex)
{
	uint32_t length = (uint32_t)strcspn(hex, ".") / 2;
	uint8_t *bytes = malloc(length + 1);

	take_hex(bytes, length, hex);
	int error = blob_put(store, key, bytes, length);

	free(bytes);
	return error;
}

/* A command; what it finds is `length` bytes at *found. */
static int64_t work(char *text, uint8_t **found, uint64_t *length)
{
	static struct blob_figures figures;
	char *word = strsep(&text, " \n");
	uint64_t key = text ? strtoull(text, &text, 10) : 0;
	int64_t result = 0;

	if (strcmp(word, "format") == 0)
		return blob_format(&drives[0]);
	if (strcmp(word, "open") == 0 || strcmp(word, "indexed") == 0) {
		at_open = allocated();
		return *word == 'o' ? blob_open(&drives[0], &store)
				    : blob_open_indexed(&drives[0], &drives[1], &store);
	}
	if (strcmp(word, "put") == 0)
		return put(key, text + 1);
	if (strcmp(word, "huge") == 0)
		return blob_put(store, key, "", BLOB_MAX + 1);
	if (strcmp(word, "get") == 0) {
		result = get(key, (uint32_t)strtoul(text, NULL, 10), found);
		*length = result > 0 ? (uint64_t)result : 0;
		return result;
	}
	if (strcmp(word, "length") == 0)
		return blob_length(store, key);
	if (strcmp(word, "delete") == 0)
		return blob_delete(store, key);
	if (strcmp(word, "sync") == 0)
		return blob_sync(store);
	if (strcmp(word, "compact") == 0)
		return blob_compact(store);
	if (strcmp(word, "save") == 0)
		return blob_save(store, &drives[1]);
	if (strcmp(word, "close") == 0) {
		blob_close(store);
		store = NULL;
		if (allocated() > at_open + COMMAND)
			result = (int64_t)(allocated() - at_open);
	} else if (strcmp(word, "count") == 0) {
		blob_count(store, &figures);
		*found = memcpy(malloc(sizeof(figures)), &figures, sizeof(figures));
		*length = sizeof(figures);
	}
	return result;
}

int main(void)
{
	const char *line = ask("n 0 ");

	while (strncmp(line, "end", 3) != 0) {
		uint8_t *found = NULL;
		uint64_t length = 0;
		char *command = strdup(line),
		     words[64]; /* the next answer comes to the same place */

		question_begins();
		if (strncmp(command, "drives ", 7) == 0)
			make_drives(command + 7);
		snprintf(words, sizeof(words), "n %" PRId64, work(command, &found, &length));
		line = ask_with(words, found, length);
		free(found);
		free(command);
	}
	return 0;
}
