/*
 * Commands that write disks, for tests: what is written is a function of its place.
 *
 *	write hdb 100 3 7	word i (64 bits) of sector n is (seed 7 << 48) + n * 64 + i
 *	verify hdb 100 3 7	reads it back, and compares
 *	flush hdb
 */
#include <stdbool.h>
#include <stddef.h>

#include "drivers/disk/block.h"
#include "kernel/cpu/machine.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/number.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "mm/page_alloc.h"

#define ORDER	10 /* 4 MiB */
#define SECTORS ((PAGE_SIZE << ORDER) / SECTOR_SIZE)
#define WORDS	(SECTOR_SIZE / sizeof(uint64_t))

struct range {
	struct block_device *device;
	uint64_t lba, count, seed;
};

static bool number(int count, char **words, int place, uint64_t otherwise, uint64_t *value)
{
	*value = otherwise;
	return place >= count || number_parse(words[place], value);
}

static bool parse(int count, char **words, struct range *range)
{
	range->device = block_find(words[1]);
	return range->device && number(count, words, 2, 0, &range->lba) &&
	       number(count, words, 3, 1, &range->count) &&
	       number(count, words, 4, 0, &range->seed) && range->count <= SECTORS;
}

static uint64_t word(const struct range *range, unsigned i)
{
	return (range->seed << 48) + range->lba * WORDS + i;
}

static int end(const char *what, const struct range *range, int error)
{
	if (error < 0)
		printk("%s %s: %s\n", what, range->device->name, errno_name(-error));
	else
		printk("%s %s: %llu sectors\n", what, range->device->name, range->count);
	return error < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run_write(int count, char **words)
{
	struct range range;
	uint64_t *buffer = page_alloc(ORDER);
	int error = -EINVAL;

	if (!buffer || !parse(count, words, &range))
		return EXIT_FAILURE;
	for (unsigned i = 0; i < range.count * WORDS; i++)
		buffer[i] = word(&range, i);
	error = block_write(range.device, range.lba, range.count, buffer, BLOCK_DATA);
	page_free(buffer, ORDER);
	return end("write", &range, error);
}

static int run_verify(int count, char **words)
{
	struct range range;
	uint64_t *buffer = page_alloc(ORDER);
	int error;

	if (!buffer || !parse(count, words, &range))
		return EXIT_FAILURE;
	error = block_read(range.device, range.lba, range.count, buffer, BLOCK_DATA);
	for (unsigned i = 0; error == 0 && i < range.count * WORDS; i++)
		if (buffer[i] != word(&range, i))
			error = -EUCLEAN;
	page_free(buffer, ORDER);
	return end("verify", &range, error);
}

static int run_flush(int count, char **words)
{
	struct range range = { .device = block_find(words[1]) };

	return range.device ? end("flush", &range, block_flush(range.device)) : EXIT_FAILURE;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "write", "DRIVE LBA [SECTORS [SEED]]", "write sectors that say where they are", 2,
	  run_write },
	{ "verify", "DRIVE LBA [SECTORS [SEED]]", "read what `write` wrote", 2, run_verify },
	{ "flush", "DRIVE", "the drive empties its write cache", 1, run_flush },
};
