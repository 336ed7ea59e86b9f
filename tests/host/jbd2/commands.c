/* Commands for the journal of a real image, whose blocks are given. */
#include "tests/host/jbd2/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/jbd2/disk.h"
#include "fs/jbd2/journal.h"
#include "tests/host/ext/shim.h"

#define LOG_MAX 65536u

static uint64_t places[LOG_MAX];
static struct journal *journal;
static uint32_t block_size;

static int map(void *context, uint32_t logical, uint64_t *physical)
{
	(void)context;
	*physical = places[logical];
	return 0;
}

/* The first line: the blocks of the journal's file, in order. */
static uint32_t read_places(void)
{
	uint32_t count = 0;
	char end = ' ';

	while (end != '\n' && count < LOG_MAX && scanf("%ju%c", &places[count], &end) == 2)
		count++;
	return count;
}

static void say(const char *what, int error)
{
	if (error)
		printf("%s error %d\n", what, -error);
	else
		printf("%s\n", what);
}

/* Fills a block with a byte; "escaped": it begins with the journal's magic. */
static int change(uint64_t block, int byte, bool is_escaped)
{
	uint32_t magic = big32(JOURNAL_MAGIC);
	struct cached_block *buffer;
	int error = bcache_get(&disk.device, block, block_size, BLOCK_OTHER, &buffer);

	if (error)
		return error;
	error = journal_change(journal, buffer);
	if (!error)
		memset(buffer->data, byte, block_size);
	if (!error && is_escaped)
		memcpy(buffer->data, &magic, sizeof(magic));
	bcache_put(buffer);
	return error;
}

static int obey(const char *command, uint64_t block, uint64_t value)
{
	if (strcmp(command, "begin") == 0)
		return journal_begin(journal, (uint32_t)block);
	if (strcmp(command, "change") == 0)
		return change(block, (int)value, false);
	if (strcmp(command, "escaped") == 0)
		return change(block, (int)value, true);
	if (strcmp(command, "revoke") == 0)
		return journal_revoke(journal, block, value);
	if (strcmp(command, "end") == 0)
		journal_end(journal);
	if (strcmp(command, "commit") == 0)
		return journal_commit(journal);
	if (strcmp(command, "close") == 0) {
		int error = journal_close(journal);

		exit(error != 0);
	}
	return 0;
}

static void obey_all(void)
{
	char line[128], command[16];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		uint64_t block = 0, value = 0;

		if (sscanf(line, "%15s %ju %ju", command, &block, &value) > 0)
			say(command, obey(command, block, value));
	}
}

void work_on_image(const char *path, uint32_t size, bool wide, bool checksums)
{
	struct journal_place place = {
		.device = &disk.device,
		.block_size = size,
		.map = map,
		.now = clock_count,
		.wide = wide,
		.checksums = checksums,
	};
	uint32_t written = 0;
	int error;

	disk_open(path, "hdc", DISK_SHARED);
	block_size = size;
	place.blocks = read_places();
	error = journal_open(&place, &journal);
	say("open", error);
	if (error)
		return;
	error = journal_recover(journal, &written);
	printf("wrote %u\n", written);
	say("recover", error);
	if (!error)
		obey_all();
}
