/*
 * The journal answers questions on stdin (tests/storage/journals.py). One question is a line
 *
 *	disk SIZE BLOCK_SIZE LOG_AT LOG_BLOCKS CHECKSUMS BUFFERS
 *
 * then the SIZE bytes of the disk, and then commands, a line each. Every write and flush that
 * reaches the disk is printed ("W LBA BYTES-IN-HEX", "F"), and after them the command's result:
 *
 *	open, recover
 *	begin COUNT, end, commit, close, revoke FIRST COUNT
 *	change BLOCK NUMBER	a cached block gets the contents of this number
 *	data BLOCK NUMBER	they go to the disk, past the journal
 *	look BLOCK		the block is read through the cache
 *	tell BLOCK		the same; instead of the open transaction its second word is told
 *	flush
 *	fail REQUESTS COUNT	of the requests after this many more these fail; 0: all of them
 *	bad LBA			the device is large, and has a bad sector there
 *
 * A result is the command's name, its error, and the number of the open transaction; of recover,
 * how many blocks it says that it has written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/jbd2/journal.h"
#include "tests/host/ext/shim.h"

#define ESCAPES	       7u
#define SECTORS_BEYOND 64 /* of a large device, after its bad sector */

static struct journal *journal;
static uint32_t block_size, log_at;
static size_t printed; /* entries of the record */

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

static void print_record(void)
{
	static const char digits[] = "0123456789abcdef";

	for (; printed < disk.record.count; printed++) {
		const struct disk_entry *entry = &disk.record.entries[printed];
		const uint8_t *bytes = disk.record.bytes + entry->data;

		if (entry->sectors == 0) {
			puts("F");
			continue;
		}
		printf("W %u ", (unsigned)entry->lba);
		for (uint32_t i = 0; i < entry->sectors * SECTOR_SIZE; i++) {
			putchar(digits[bytes[i] >> 4]);
			putchar(digits[bytes[i] & 15]);
		}
		putchar('\n');
	}
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

static void say(const char *command, int error, uint32_t number)
{
	print_record();
	printf("%s %d %u\n", command, error, number);
}

static void obey(const char *command, uint64_t first, uint64_t second, uint32_t *written)
{
	int error = 0;

	if (strcmp(command, "recover") == 0) {
		error = journal_recover(journal, written);
	} else if (strcmp(command, "close") == 0) {
		error = journal_close(journal);
		journal = NULL;
	} else if (strcmp(command, "data") == 0) {
		error = write_data(first, (uint32_t)second);
	} else if (strcmp(command, "look") == 0 || strcmp(command, "tell") == 0) {
		error = look(first, written);
	} else if (strcmp(command, "flush") == 0) {
		error = block_flush(&disk.device);
	} else if (strcmp(command, "fail") == 0) {
		disk.fail_from = disk.requests + first;
		disk.fail_count = second ? second : 1ull << 32;
	} else if (strcmp(command, "bad") == 0) {
		disk.bad_sector = first;
		disk.device.sectors = disk.limit = first + SECTORS_BEYOND;
	} else {
		error = obey_journal(command, first, second);
	}
	if (strcmp(command, "recover") == 0 || strcmp(command, "tell") == 0)
		say(command, error, *written);
	else
		say(command, error, journal ? journal_open_number(journal) : 0);
}

/* Memory is lost, as in a power cut. */
static void forget(uint64_t blocks)
{
	disk.recording = false;
	disk.fail_from = disk.requests;
	disk.fail_count = UINT64_MAX;
	if (journal)
		journal_close(journal);
	journal = NULL;
	bcache_forget(&disk.device, 0, blocks, block_size);
	disk.fail_count = 0;
	disk.record.count = disk.record.used = printed = 0;
	free(disk.bytes);
}

static void open_disk(const char *line)
{
	static uint32_t buffers;
	unsigned size, log_blocks, checksums, most;

	if (sscanf(line, "disk %u %u %u %u %u %u", &size, &block_size, &log_at, &log_blocks,
		   &checksums, &most) != 6)
		fail("not a disk: %s", line);
	disk.bytes = malloc(size);
	if (fread(disk.bytes, 1, size, stdin) != size)
		fail("the disk is cut");
	disk.device.sectors = disk.limit = size / SECTOR_SIZE;
	disk.bad_sector = NO_SECTOR;
	disk.recording = true;
	if (buffers != most)
		bcache_init(buffers = most);

	struct journal_place place = {
		.device = &disk.device,
		.block_size = block_size,
		.blocks = log_blocks,
		.map = map,
		.checksums = checksums,
	};

	say("open", journal_open(&place, &journal), 0);
}

int main(void)
{
	char line[128], command[16];
	bool is_open = false;

	disk.device.name = "hdb";
	disk.mode = DISK_PRIVATE;
	disk.budget = 2000000; /* a walk that does not end is an answer, too */
	console_on = false;
	while (fgets(line, sizeof(line), stdin) != NULL) {
		uint64_t first = 0, second = 0;
		uint32_t written = 0;

		if (strncmp(line, "disk ", 5) == 0) {
			if (is_open)
				forget(disk.device.sectors);
			open_disk(line);
			is_open = true;
		} else if (sscanf(line, "%15s %ju %ju", command, &first, &second) > 0) {
			obey(command, first, second, &written);
		}
	}
	return 0;
}
