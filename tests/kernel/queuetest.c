/*
 * A command that submits many requests at once, for tests of the queue:
 *
 *	queue hdb c-look R100 W108 W116x4 F R50
 *
 * reads or writes 8 sectors (or so many) from each address on, and flushes at F; M reads as if for
 * a map. Then it waits for all, the last one first. A word that is a device's name says where the
 * ones after it go, to a snapshot, say, which has the same queue. Word i (64 bits) of sector n is n
 * * 64 + i: so it is written, and so it must be read, unless the drive has an error there.
 */

#include "drivers/disk/block.h"
#include "drivers/disk/queue.h"
#include "kernel/cpu/machine.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/number.h"
#include "kernel/lib/string.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "mm/page_alloc.h"

#define ORDER	 9 /* 2 MiB */
#define REQUESTS 64
#define WORDS	 (SECTOR_SIZE / sizeof(uint64_t))
#define USUAL	 8 /* sectors */
#define ROOM	 ((PAGE_SIZE << ORDER) / SECTOR_SIZE)

static struct block_request requests[REQUESTS];

/* "W116x4" */
static bool parse(char *word, struct block_request *request)
{
	uint64_t count = USUAL;
	char *times = word;

	request->operation = *word;
	if (*word == 'F')
		return true;
	while (*times && *times != 'x')
		times++;
	if (*times) {
		*times++ = '\0';
		if (!number_parse(times, &count))
			return false;
	}
	request->count = count;
	if (*word == 'M') {
		request->operation = 'R';
		request->purpose = BLOCK_MAPPING;
	}
	return (*word == 'R' || *word == 'W' || *word == 'M') &&
	       number_parse(word + 1, &request->lba) && request->lba < request->device->sectors &&
	       count <= request->device->sectors - request->lba && count <= BLOCK_TRANSFER_SECTORS;
}

static uint64_t word_at(uint64_t lba, unsigned i)
{
	return lba * WORDS + i;
}

static void fill(struct block_request *request)
{
	for (unsigned i = 0; i < request->count * WORDS; i++)
		((uint64_t *)request->buffer)[i] =
		    request->operation == 'W' ? word_at(request->lba, i) : 0;
}

static bool is_right(const struct block_request *request, uint64_t lba)
{
	for (unsigned i = 0; i < request->count * WORDS; i++)
		if (((uint64_t *)request->buffer)[i] != word_at(lba, i))
			return false;
	return true;
}

/* Returns how many, or -1 if a word is no request, or there is no room for its sectors. */
static int prepare(int count, char **words, uint8_t *buffer)
{
	struct block_device *device = block_find(words[1]);
	unsigned filled = 0, made = 0;

	for (int i = 3; i < count; i++) {
		struct block_request *request = &requests[made];

		if (block_find(words[i])) {
			device = block_find(words[i]);
			continue;
		}
		*request = (struct block_request){ .device = device,
						   .buffer = buffer + filled * SECTOR_SIZE };
		if (!parse(words[i], request) || filled + request->count > ROOM)
			return -1;
		fill(request);
		filled += request->count;
		made++;
	}
	return made;
}

/* Submits all at once. Returns how many went wrong. */
static unsigned run_all(unsigned count)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < count; i++)
		block_submit(&requests[i]);
	while (count-- > 0) {
		const struct block_request *request = &requests[count];
		int error = block_wait(&requests[count]);

		if (error == 0 && request->operation == 'R' && !is_right(request, request->lba))
			error = -EUCLEAN;
		if (error)
			printk("queue: %c%llux%u: %s\n", request->operation, request->lba,
			       request->count, errno_name(-error));
		wrong += error != 0;
	}
	return wrong;
}

static int run_queue(int count, char **words)
{
	struct block_device *device = block_find(words[1]);
	uint8_t *buffer = page_alloc(ORDER);
	unsigned wrong = 0;

	if (!device || !buffer || count - 3 > REQUESTS)
		return EXIT_FAILURE;
	device->queue->order = strcmp(words[2], "fifo") == 0 ? BLOCK_FIFO : BLOCK_C_LOOK;
	int made = prepare(count, words, buffer);

	if (made > 0)
		wrong = run_all(made);
	page_free(buffer, ORDER);
	printk("queue: %d requests, %u wrong%s\n", made, wrong,
	       made < 0 ? ": what is no request?" : "");
	return made >= 0 && !wrong ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* What was counted of a device, requests and sectors. */
static int run_counts(int count, char **words)
{
	const struct block_device *device = block_find(words[1]);

	if (!device)
		return EXIT_FAILURE;
	const struct block_count *counts = device->stats.counts, *data = &counts[BLOCK_DATA];
	const struct block_count *mapping = &counts[BLOCK_MAPPING], *writes = &counts[BLOCK_WRITES];

	printk("counts %s: data %llu %llu mapping %llu %llu written %llu %llu merged %llu %llu\n",
	       words[1], data->requests, data->sectors, mapping->requests, mapping->sectors,
	       writes->requests, writes->sectors, block_reads(device).merged, writes->merged);
	return EXIT_SUCCESS;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "queue", "DRIVE fifo|c-look R|W|F...", "submit many requests at once", 3, run_queue },
	{ "counts", "DEVICE", "its requests and sectors, by purpose", 1, run_counts },
};
