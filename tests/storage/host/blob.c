/*
 * Works with a blob store (labs/storage/blob/log.c) on this computer. What it is to do, and the
 * store's drives, are in tests/storage/blob.py: each call of a drive is a line on the standard
 * output, and waits for a line on the standard input. So a store has nothing to keep an object in
 * but what it has written to a drive. Drive 0 has the store, drive 1 a saved index.
 *
 *	\1r DRIVE OFFSET LENGTH		read: ERROR BYTES
 *	\1w DRIVE OFFSET BYTES		write: ERROR
 *	\1s DRIVE			sync: ERROR
 *	\1n RESULT BYTES		what the last command returned; the next command:
 *		drives SIZE SIZE, format, open, indexed (opens with drive 1), close,
 *		put KEY BYTES, huge KEY (more than BLOB_MAX bytes), get KEY ROOM, length KEY,
 *		delete KEY, sync, compact, save (the index), count (BYTES: struct blob_figures),
 *		end
 *
 * Bytes are in hexadecimal, with "." at their end; an error is 0 or a negative errno.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "labs/storage/blob/blob.h"
#include "tests/host/question.h"

#define DRIVES 2u

static struct blob_device drives[DRIVES];
static struct blob_store *store;
static char *line;
static size_t line_room;

static void hear(void)
{
	fflush(stdout);
	if (getline(&line, &line_room, stdin) < 0)
		_exit(3);
}

static void say_bytes(const void *from, uint64_t length)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *bytes = from;

	for (uint64_t i = 0; i < length; i++) {
		putchar_unlocked(digits[bytes[i] >> 4]);
		putchar_unlocked(digits[bytes[i] & 15]);
	}
	fputs(".\n", stdout);
}

static unsigned digit(char letter)
{
	return letter <= '9' ? (unsigned)(letter - '0') : (unsigned)(letter - 'a' + 10);
}

/* The bytes at a place of the line; returns how many, at most `room`. */
static uint32_t hear_bytes(const char *at, uint8_t *to, uint32_t room)
{
	uint32_t length = 0;

	for (; length < room && at[0] != '.' && at[1] != '.'; at += 2)
		to[length++] = (uint8_t)(digit(at[0]) << 4 | digit(at[1]));
	return length;
}

/* --- the drives --- */

static unsigned number_of(const struct blob_device *device)
{
	return (unsigned)(device - drives);
}

static int drive_read(struct blob_device *device, uint64_t offset, void *to, uint32_t length)
{
	char *rest;

	printf("\1r %u %" PRIu64 " %" PRIu32 "\n", number_of(device), offset, length);
	hear();
	int error = (int)strtol(line, &rest, 10);

	if (error == 0 && hear_bytes(rest + 1, to, length) != length)
		_exit(3);
	return error;
}

static int drive_write(struct blob_device *device, uint64_t offset, const void *from,
		       uint32_t length)
{
	printf("\1w %u %" PRIu64 " ", number_of(device), offset);
	say_bytes(from, length);
	hear();
	return atoi(line);
}

static int drive_sync(struct blob_device *device)
{
	printf("\1s %u\n", number_of(device));
	hear();
	return atoi(line);
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

static int64_t put(uint64_t key, const char *text)
{
	uint32_t room = (uint32_t)strlen(text) / 2;
	uint8_t *bytes = malloc(room + 1);
	int error = blob_put(store, key, bytes, hear_bytes(text, bytes, room));

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
	if (strcmp(word, "open") == 0 || strcmp(word, "indexed") == 0)
		return *word == 'o' ? blob_open(&drives[0], &store)
				    : blob_open_indexed(&drives[0], &drives[1], &store);
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
	} else if (strcmp(word, "count") == 0) {
		blob_count(store, &figures);
		*found = memcpy(malloc(sizeof(figures)), &figures, sizeof(figures));
		*length = sizeof(figures);
	}
	return result;
}

int main(void)
{
	printf("\1n 0 .\n");
	for (hear(); strncmp(line, "end", 3) != 0; hear()) {
		uint8_t *found = NULL;
		uint64_t length = 0;
		char *command = strdup(line); /* the drives' answers come into the same line */

		question_begins();
		if (strncmp(line, "drives ", 7) == 0)
			make_drives(line + 7);
		int64_t result = work(command, &found, &length);

		printf("\1n %" PRId64 " ", result);
		say_bytes(found, length);
		free(found);
		free(command);
	}
	return 0;
}
