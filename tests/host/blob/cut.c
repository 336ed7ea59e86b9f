/*
 * Cuts the power of the blob store at every write of a seeded workload, and looks what is left.
 *
 *	cut SEED OPERATIONS
 *
 * The drive has a cache: what was written since the last sync is on it by sectors or not, at
 * random. For each write number there is one run: sessions that end at such a cut, one after
 * another, on one drive. After each the store is opened and compared with what may be there: for
 * each object its state at the last sync, or a later one. Prints the number of cuts; status 1 with
 * the first fault.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "labs/storage/blob/blob.h"

#define DISK	 (256u << 10)
#define KEYS	 24u
#define VERSIONS 64u
#define SESSIONS 3
#define PENDING	 4096u

struct drive {
	struct blob_device device;
	uint8_t durable[DISK], cached[DISK];
	bool dirty[DISK / BLOB_SECTOR];
	uint32_t writes, cut_at; /* the power goes with write number cut_at */
	bool is_off;
};

/* For each key the versions that may be there; 0 is none. The first is that of the last sync. */
static uint32_t may_be[KEYS][VERSIONS], choices[KEYS];
static uint64_t state;
static uint32_t version;
static struct drive drive;

static uint32_t below(uint32_t limit)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % limit;
}

static void lose_power(void)
{
	for (uint32_t i = 0; i < DISK / BLOB_SECTOR; i++)
		if (drive.dirty[i] && below(2))
			memcpy(drive.durable + i * BLOB_SECTOR, drive.cached + i * BLOB_SECTOR,
			       below(4) ? BLOB_SECTOR : below(64));
	memcpy(drive.cached, drive.durable, DISK);
	memset(drive.dirty, 0, sizeof(drive.dirty));
	drive.is_off = true;
}

static int drive_read(struct blob_device *device, uint64_t offset, void *to, uint32_t length)
{
	if (drive.is_off)
		return -EIO;
	memcpy(to, drive.cached + offset, length);
	return 0;
}

static int drive_write(struct blob_device *device, uint64_t offset, const void *from,
		       uint32_t length)
{
	if (drive.is_off || offset % BLOB_SECTOR || length % BLOB_SECTOR || offset + length > DISK)
		return -EIO;
	memcpy(drive.cached + offset, from, length);
	memset(drive.dirty + offset / BLOB_SECTOR, 1, length / BLOB_SECTOR);
	if (++drive.writes == drive.cut_at)
		lose_power();
	return drive.is_off ? -EIO : 0;
}

static int drive_sync(struct blob_device *device)
{
	if (drive.is_off)
		return -EIO;
	memcpy(drive.durable, drive.cached, DISK);
	memset(drive.dirty, 0, sizeof(drive.dirty));
	return 0;
}

static uint32_t fill(uint8_t *data, uint32_t key, uint32_t number)
{
	uint32_t length = 4 + (key * 131 + number * 197) % 1800;

	memset(data, (int)(number + key), length);
	memcpy(data, &number, 4);
	return length;
}

static void fail(const char *what, uint32_t key, uint32_t got)
{
	printf("cut at write %u: object %u: %s (version %u; last synced %u)\n", drive.cut_at, key,
	       what, got, may_be[key][0]);
	exit(1);
}

/* The version of an object that is there; its contents must be those of that version. */
static uint32_t look(struct blob_store *store, uint32_t key)
{
	static uint8_t data[4096], wanted[4096];
	int64_t length = blob_get(store, key, data, sizeof(data));
	uint32_t number;

	if (length == -ENOENT)
		return 0;
	if (length < 4)
		fail("cannot be read", key, 0);
	memcpy(&number, data, 4);
	if (fill(wanted, key, number) != length || memcmp(data, wanted, length) != 0)
		fail("has the contents of no version", key, number);
	return number;
}

static void check(struct blob_store *store)
{
	for (uint32_t key = 0; key < KEYS; key++) {
		uint32_t number = look(store, key), i = 0;

		while (i < choices[key] && may_be[key][i] != number)
			i++;
		if (i == choices[key])
			fail(number ? "is one that was deleted or replaced" : "is lost", key,
			     number);
		may_be[key][0] = number;
		choices[key] = 1;
	}
}

static void issued(uint32_t key, uint32_t number)
{
	if (choices[key] < VERSIONS)
		may_be[key][choices[key]++] = number;
}

static int synced(struct blob_store *store)
{
	int error = blob_sync(store);

	for (uint32_t key = 0; !error && key < KEYS; key++) {
		may_be[key][0] = may_be[key][choices[key] - 1];
		choices[key] = 1;
	}
	return error;
}

/* What is not there needs no delete; that is its state all the same. */
static int forget(struct blob_store *store, uint32_t key)
{
	int error = blob_delete(store, key);

	if (error == -ENOSPC) {
		error = blob_compact(store);
		return error ? error : forget(store, key);
	}
	if (error == 0 || drive.is_off)
		issued(key, 0);
	return error == -ENOENT ? 0 : error;
}

/* One operation; -EIO when the power is off. What fails for want of room is followed by a
 * compaction. */
static int operate(struct blob_store *store)
{
	static uint8_t data[4096];
	uint32_t key = below(KEYS), what = below(16);
	int error = 0;

	if (choices[key] == VERSIONS || what < 3)
		return synced(store);
	if (what == 3) {
		bool all = below(3) == 0;

		for (key = 0; all && !error && key < KEYS; key++)
			error = forget(store, key);
		return error ? error : blob_compact(store);
	}
	if (what < 8) {
		error = forget(store, key);
	} else {
		uint32_t length = fill(data, key, ++version);

		issued(key, version);
		error = blob_put(store, key, data, length);
		if (error == -ENOSPC) {
			choices[key]--;
			error = blob_compact(store);
		}
	}
	return error;
}

/* A session: opens, checks, works until the power goes or all is done. Returns false when the power
 * went. */
static bool session(uint32_t operations, uint32_t cut_at)
{
	struct blob_store *store;

	drive.writes = 0;
	drive.cut_at = cut_at;
	drive.is_off = false;
	int error = blob_open(&drive.device, &store);

	if (error) {
		if (!drive.is_off)
			fail("the store cannot be opened", 0, -error);
		return false;
	}
	check(store);
	for (uint32_t i = 0; i < operations && !error; i++)
		error = operate(store);
	if (error && !drive.is_off)
		fail("an operation failed", 0, -error);
	blob_close(store);
	return !drive.is_off;
}

int main(int count, char **arguments)
{
	uint32_t seed = count > 1 ? strtoul(arguments[1], NULL, 0) : 1;
	uint32_t operations = count > 2 ? strtoul(arguments[2], NULL, 0) : 60, cuts = 0;
	bool done = false;

	drive.device = (struct blob_device){ drive_read, drive_write, drive_sync, DISK };
	for (uint32_t cut_at = 1; !done; cut_at++) {
		memset(drive.durable, 0, DISK);
		memset(drive.cached, 0, DISK);
		drive.is_off = false;
		drive.cut_at = 0;
		for (uint32_t key = 0; key < KEYS; key++) {
			may_be[key][0] = 0;
			choices[key] = 1;
		}
		version = 0;
		state = seed;
		if (blob_format(&drive.device) != 0)
			return 1;
		done = session(operations, cut_at);
		for (int i = 1; i < SESSIONS && !done; i++, cuts++)
			session(operations, 1 + below(cut_at + 3));
		cuts += !done;
		session(0, 0);
	}
	printf("%u cuts\n", cuts);
	return 0;
}
