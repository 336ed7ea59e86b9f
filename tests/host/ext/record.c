/* The record of a disk's writes and flushes, and the format in which QEMU's blklogwrites has one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/ext/shim.h"

#define LOG_MAGIC	0x6a736677736872ull /* of dm-log-writes */
#define LOG_VERSION	1u
#define LOG_FLUSH	1u
#define LOG_SECTORS_MAX 65536u /* of one entry */

static void *enlarge(void *memory, size_t size)
{
	memory = realloc(memory, size);
	if (memory == NULL)
		fail("no memory for a record of %zu bytes", size);
	return memory;
}

void record_add(struct disk_record *record, uint64_t lba, uint32_t sectors, const void *data)
{
	size_t length = (size_t)sectors * SECTOR_SIZE;

	if (record->count == record->room) {
		record->room = 2 * record->room + 64;
		record->entries = enlarge(record->entries, record->room * sizeof(*record->entries));
	}
	if (record->used + length > record->size) {
		record->size = 2 * record->size + length + (1u << 16);
		record->bytes = enlarge(record->bytes, record->size);
	}
	record->entries[record->count++] = (struct disk_entry){ lba, sectors, record->used };
	if (length > 0)
		memcpy(record->bytes + record->used, data, length);
	record->used += length;
}

/* Sector 0: magic, version, entries (of 64 bits each), and the size of a sector. */
static void save_head(const struct disk_record *record, FILE *file)
{
	uint64_t words[SECTOR_SIZE / 8] = { LOG_MAGIC, LOG_VERSION, record->count, SECTOR_SIZE };

	fwrite(words, sizeof(words), 1, file);
}

/* An entry is a sector, {lba, sectors, flags, length of the data}, and its contents. */
void record_save(const struct disk_record *record, const char *path)
{
	FILE *file = fopen(path, "wb");

	if (file == NULL)
		fail("cannot write %s", path);
	save_head(record, file);
	for (size_t i = 0; i < record->count; i++) {
		const struct disk_entry *entry = &record->entries[i];
		uint64_t flags = entry->sectors == 0 ? LOG_FLUSH : 0;
		uint64_t words[SECTOR_SIZE / 8] = { entry->lba, entry->sectors, flags };

		fwrite(words, sizeof(words), 1, file);
		fwrite(record->bytes + entry->data, SECTOR_SIZE, entry->sectors, file);
	}
	if (fclose(file) != 0)
		fail("cannot write %s", path);
}

/* Adds one entry of a log. FUA and flags of other kinds are for who reads logs to tell apart. */
static void load_entry(struct disk_record *record, FILE *file, const char *path)
{
	uint64_t words[SECTOR_SIZE / 8];
	uint8_t *data;

	if (fread(words, sizeof(words), 1, file) != 1 || words[1] > LOG_SECTORS_MAX)
		fail("%s: an entry is damaged", path);
	data = malloc((size_t)words[1] * SECTOR_SIZE + 1);
	if (data == NULL || fread(data, SECTOR_SIZE, words[1], file) != words[1])
		fail("%s: the data of an entry is missing", path);
	if (words[2] & LOG_FLUSH)
		record_add(record, 0, 0, NULL);
	if (words[1] > 0)
		record_add(record, words[0], (uint32_t)words[1], data);
	free(data);
}

void record_load(struct disk_record *record, const char *path)
{
	uint64_t words[SECTOR_SIZE / 8] = { 0 };
	FILE *file = fopen(path, "rb");

	if (file == NULL || fread(words, sizeof(words), 1, file) != 1 || words[0] != LOG_MAGIC ||
	    words[3] != SECTOR_SIZE)
		fail("%s is no log of writes with sectors of %u bytes", path, SECTOR_SIZE);
	for (uint64_t i = 0; i < words[2]; i++)
		load_entry(record, file, path);
	fclose(file);
}
