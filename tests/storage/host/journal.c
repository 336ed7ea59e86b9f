/*
 * The journal, asked from outside (tests/storage/journals.py): it asks for each command, and its
 * disk is outside, too (asked_disk.h).
 *
 *	next			the first command; an empty line: that was all
 *	done NAME ERROR NUMBER	what became of a command; gets the next one. The number is that of
 *				the open transaction; of recover, how many blocks it says that it
 *				has written
 *
 * Commands:
 *
 *	disk SECTORS BLOCK_SIZE LOG_AT LOG_BLOCKS CHECKSUMS BUFFERS
 *				another disk, and its journal is opened (its name is "open" then)
 *	recover
 *	begin COUNT, end, commit, close, revoke FIRST COUNT
 *	change BLOCK NUMBER	a cached block gets the contents of this number
 *	data BLOCK NUMBER	they go to the disk, past the journal
 *	look BLOCK		the block is read through the cache
 *	tell BLOCK		the same; instead of the open transaction its second word is told
 *	flush
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/jbd2/journal.h"
#include "tests/host/ext/shim.h"
#include "tests/storage/host/asked.h"
#include "tests/storage/host/asked_disk.h"

#define ESCAPES 7u

static struct journal *journal;
static uint32_t block_size, log_at;

static int map(void *context, uint32_t logical, uint64_t *physical)
{
	(void)context;
	*physical = log_at + logical;
	return 0;
}

static void contents(uint8_t *data, uint32_t number)
{
	static const uint8_t magic[] = { 0xc0, 0x3b, 0x39, 0x98 };

	for (uint32_t at = 0; at < block_size; at += sizeof(number))
		memcpy(data + at, &number, sizeof(number));
	if (number % ESCAPES == 0)
		memcpy(data, magic, sizeof(magic));
}

static int change(uint64_t block, uint32_t number)
{
	struct cached_block *buffer;
	int error = bcache_get(&disk.device, block, block_size, BLOCK_OTHER, &buffer);

	if (error)
		return error;
	error = journal_change(journal, buffer);
	if (!error)
		contents(buffer->data, number);
	bcache_put(buffer);
	return error;
}

static int look(uint64_t block, uint32_t *word)
{
	struct cached_block *buffer;
	int error = bcache_get(&disk.device, block, block_size, BLOCK_OTHER, &buffer);

	if (error)
		return error;
	memcpy(word, buffer->data + sizeof(*word), sizeof(*word));
	bcache_put(buffer);
	return 0;
}

static int write_data(uint64_t block, uint32_t number)
{
	static uint8_t data[4096];
	uint32_t sectors = block_size / SECTOR_SIZE;

	contents(data, number);
	return block_write(&disk.device, block * sectors, sectors, data, BLOCK_DATA);
}

static int obey_journal(const char *command, uint64_t first, uint64_t second)
{
	if (strcmp(command, "begin") == 0)
		return journal_begin(journal, (uint32_t)first);
	if (strcmp(command, "change") == 0)
		return change(first, (uint32_t)second);
	if (strcmp(command, "revoke") == 0)
		return journal_revoke(journal, first, second);
	if (strcmp(command, "commit") == 0)
		return journal_commit(journal);
	if (strcmp(command, "end") == 0)
		journal_end(journal);
	return 0;
}

/* Returns the next command. */
static const char *done(const char *command, int error, uint32_t number)
{
	return ask("done %s %d %u", command, error, number);
}

static const char *obey(const char *command, uint64_t first, uint64_t second)
{
	uint32_t written = 0;
	int error = 0;

	if (strcmp(command, "recover") == 0) {
		error = journal_recover(journal, &written);
	} else if (strcmp(command, "close") == 0) {
		error = journal_close(journal);
		journal = NULL;
	} else if (strcmp(command, "data") == 0) {
		error = write_data(first, (uint32_t)second);
	} else if (strcmp(command, "look") == 0 || strcmp(command, "tell") == 0) {
		error = look(first, &written);
	} else if (strcmp(command, "flush") == 0) {
		error = block_flush(&disk.device);
	} else {
		error = obey_journal(command, first, second);
	}
	if (strcmp(command, "recover") == 0 || strcmp(command, "tell") == 0)
		return done(command, error, written);
	return done(command, error, journal ? journal_open_number(journal) : 0);
}

/* Memory is lost, as in a power cut. */
static void forget(uint64_t blocks)
{
	disk.fail_from = disk.requests;
	disk.fail_count = UINT64_MAX;
	if (journal)
		journal_close(journal);
	journal = NULL;
	bcache_forget(&disk.device, 0, blocks, block_size);
	disk.fail_count = 0;
}

static const char *open_disk(const char *line)
{
	static uint32_t buffers;
	unsigned log_blocks, checksums, most;
	uint64_t sectors;

	if (sscanf(line, "disk %ju %u %u %u %u %u", &sectors, &block_size, &log_at, &log_blocks,
		   &checksums, &most) != 6)
		fail("not a disk: %s", line);
	disk.device.sectors = disk.limit = sectors;
	disk.bad_sector = NO_SECTOR;
	if (buffers != most)
		bcache_init(buffers = most);

	struct journal_place place = {
		.device = &disk.device,
		.block_size = block_size,
		.blocks = log_blocks,
		.map = map,
		.checksums = checksums,
	};

	return done("open", journal_open(&place, &journal), 0);
}

int main(void)
{
	const char *line = ask("next");
	char command[16];
	bool is_open = false;

	disk.device.name = "hdb";
	disk.mode = DISK_PRIVATE;
	disk.budget = UINT64_MAX; /* the disk has its own */
	console_on = false;
	disk_is_outside();
	while (*line != '\n') {
		uint64_t first = 0, second = 0;

		if (strncmp(line, "disk ", 5) == 0) {
			if (is_open)
				forget(disk.device.sectors);
			line = open_disk(line);
			is_open = true;
		} else if (sscanf(line, "%15s %ju %ju", command, &first, &second) > 0) {
			line = obey(command, first, second);
		}
	}
	return 0;
}
