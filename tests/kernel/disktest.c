/*
 * Commands that write disks, for tests: what is written is a function of its place.
 *
 *	write hdb 100 3 7	word i (64 bits) of sector n is (seed 7 << 48) + n * 64 + i
 *	verify hdb 100 3 7	reads it back, and compares
 *	scatter hdb 100 3 7	writes and reads it by many small pieces at odd and even places
 *	flush hdb
 *	disk-mode dma-polled
 *	disk-share hdb 0 8	reads, and says whether another task ran meanwhile
 *	disk-load hdb 5		three tasks write and verify, while the mode changes every 20 ms,
 *				and interrupts come that no drive sent
 *	disk-unplug hdb		its channel floats; again: it is back
 *	disk-silence hdb	its channel loses interrupts
 */

#include "drivers/disk/ata.h"
#include "drivers/disk/ata_mode.h"
#include "drivers/disk/ata_drive.h"
#include "kernel/cpu/io.h"
#include "kernel/cpu/machine.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/number.h"
#include "kernel/lib/random.h"
#include "kernel/lib/string.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "kernel/task/sched.h"
#include "kernel/task/time.h"
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

/* The sectors from the range's number `first` on. */
static void fill(const struct range *range, unsigned first, unsigned sectors, uint64_t *buffer)
{
	for (unsigned i = 0; i < sectors * WORDS; i++)
		buffer[i] = (range->seed << 48) + (range->lba + first) * WORDS + i;
}

static bool is_right(const struct range *range, unsigned first, unsigned sectors,
		     const uint64_t *buffer)
{
	for (unsigned i = 0; i < sectors * WORDS; i++)
		if (buffer[i] != (range->seed << 48) + (range->lba + first) * WORDS + i)
			return false;
	return true;
}

static int end(const char *what, const struct range *range, int error)
{
	if (error < 0)
		printk("%s %s: %s\n", what, range->device->name, errno_name(-error));
	else
		printk("%s %s: %llu sectors\n", what, range->device->name, range->count);
	return error < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int write(const struct range *range, uint64_t *buffer)
{
	fill(range, 0, range->count, buffer);
	return block_write(range->device, range->lba, range->count, buffer, BLOCK_DATA);
}

/* -EUCLEAN: other sectors came. */
static int verify(const struct range *range, uint64_t *buffer)
{
	memset(buffer, 0xee, range->count * SECTOR_SIZE);
	int error = block_read(range->device, range->lba, range->count, buffer, BLOCK_DATA);

	return error < 0 || is_right(range, 0, range->count, buffer) ? error : -EUCLEAN;
}

static int run(const char *what, int (*action)(const struct range *, uint64_t *), int count,
	       char **words)
{
	struct range range;
	uint64_t *buffer = page_alloc(ORDER);

	if (!buffer || !parse(count, words, &range))
		return EXIT_FAILURE;
	int error = action(&range, buffer);

	page_free(buffer, ORDER);
	return end(what, &range, error);
}

static int run_write(int count, char **words)
{
	return run("write", write, count, words);
}

static int run_verify(int count, char **words)
{
	return run("verify", verify, count, words);
}

/* ---- pieces ---- */

#define PIECES 256
#define ROOM   (SECTORS - 2 * PIECES) /* sectors of the buffer in which pieces begin */

/* Pieces of 1 to 9 sectors, `step` sectors apart: some cross a multiple of 64 KiB, and if `is_odd`
 * their addresses are odd. Returns how many. */
static unsigned cut(unsigned count, uint8_t *memory, struct random *random, bool is_odd,
		    struct block_piece *pieces)
{
	unsigned used = 0, place = 0;

	while (count > 0) {
		unsigned sectors = 1 + random_below(random, 9);

		if (sectors > count)
			sectors = count;
		place += random_below(random, ROOM / PIECES - 9);
		pieces[used++] = (struct block_piece){
			memory + place * SECTOR_SIZE + (is_odd ? 1 : 2 * random_below(random, 128)),
			sectors,
		};
		place += sectors + 1;
		count -= sectors;
	}
	return used;
}

/* Fills or compares what the pieces hold. */
static bool each_piece(const struct range *range, const struct block_transfer *transfer,
		       bool is_write)
{
	static uint64_t sectors[9 * WORDS];
	const struct block_piece *end = transfer->pieces + transfer->piece_count;
	unsigned first = 0;

	for (const struct block_piece *piece = transfer->pieces; piece < end; piece++) {
		if (is_write) {
			fill(range, first, piece->sectors, sectors);
			memcpy(piece->buffer, sectors, piece->sectors * SECTOR_SIZE);
		} else {
			memcpy(sectors, piece->buffer, piece->sectors * SECTOR_SIZE);
			if (!is_right(range, first, piece->sectors, sectors))
				return false;
		}
		first += piece->sectors;
	}
	return true;
}

/* Written in one way of cutting, read in another. */
static int scatter(const struct range *range, uint64_t *buffer)
{
	static struct block_piece pieces[PIECES];
	struct random random = { range->seed };
	struct block_transfer transfer = { .lba = range->lba,
					   .count = range->count,
					   .pieces = pieces };
	int error = range->count <= BLOCK_TRANSFER_SECTORS ? 0 : -EINVAL;

	for (unsigned turn = 0; turn < 4 && error == 0; turn++) {
		transfer.is_write = turn % 2 == 0;
		transfer.is_forced = turn == 2;
		memset(buffer, 0xee, PAGE_SIZE << ORDER);
		transfer.piece_count =
		    cut(range->count, (uint8_t *)buffer, &random, turn >= 2, pieces);
		if (transfer.is_write)
			each_piece(range, &transfer, true);
		error = range->device->ops->transfer(range->device, &transfer);
		if (error == 0 && !transfer.is_write && !each_piece(range, &transfer, false))
			error = -EUCLEAN;
	}
	return error;
}

static int run_scatter(int count, char **words)
{
	return run("scatter", scatter, count, words);
}

static int run_flush(int count, char **words)
{
	struct range range = { .device = block_find(words[1]) };

	return range.device ? end("flush", &range, block_flush(range.device)) : EXIT_FAILURE;
}

static int run_mode(int count, char **words)
{
	if (count > 1 && ata_set_mode(words[1]) < 0) {
		printk("disk-mode: unknown mode %s\n", words[1]);
		return EXIT_FAILURE;
	}
	printk("disk-mode: %s\n", ata_mode());
	return EXIT_SUCCESS;
}

/* ---- load ---- */

#define WORKERS 3
#define CHUNK	40 /* sectors at most */

static struct {
	struct block_device *device;
	uint64_t until;
	unsigned requests, wrong, left;
} load;

/* Writes and verifies in a region of its own. */
static void work(void *argument)
{
	unsigned me = (uintptr_t)argument;
	uint64_t *buffer = page_alloc(3);
	struct random random = { me };

	preempt_disable(); /* as block_write asks of tasks */
	while (buffer && time_ns() < load.until) {
		struct range range = { load.device, me * 1000 + random_below(&random, 900),
				       1 + random_below(&random, CHUNK),
				       random_below(&random, 1000) };

		if (write(&range, buffer) < 0 || verify(&range, buffer) < 0)
			load.wrong++;
		load.requests += 2;
		yield(); /* polling, nobody sleeps */
	}
	if (buffer)
		page_free(buffer, 3);
	load.left--;
	preempt_enable();
}

/* The mode changes while requests are made. */
static int run_load(int count, char **words)
{
	static const char *const modes[] = { "pio-polled", "dma-interrupt", "pio-interrupt",
					     "dma-polled" };
	uint64_t seconds = 1;
	unsigned changes = 0;

	load.device = block_find(words[1]);
	if (!load.device || (count > 2 && !number_parse(words[2], &seconds)))
		return EXIT_FAILURE;
	load.until = time_ns() + seconds * 1000000000;
	load.requests = load.wrong = 0;
	load.left = WORKERS;
	for (uintptr_t i = 0; i < WORKERS; i++)
		if (!kthread_create("disk-load", work, (void *)i))
			load.left--;
	while (load.left > 0) {
		if (ata_set_mode(modes[changes++ % 4]) < 0)
			load.wrong++;
		__asm__ volatile("int $46" : : : "memory"); /* IRQ 14, from no drive */
		msleep(20);
	}
	printk("disk-load: %u requests, %u changes of mode, %u wrong\n", load.requests, changes,
	       load.wrong);
	return load.wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- who has the processor meanwhile ---- */

static volatile bool is_counting;
static volatile uint32_t counted;

static void count_up(void *argument)
{
	while (is_counting)
		counted++;
}

/* This task is not pre-empted: another one runs only while it sleeps. */
static int run_share(int count, char **words)
{
	struct range range;
	int error = -ENOMEM;

	if (!parse(count, words, &range))
		return EXIT_FAILURE;
	is_counting = true;
	counted = 0;
	if (kthread_create("disk-share", count_up, NULL)) {
		uint64_t *buffer = page_alloc(ORDER);

		error = block_read(range.device, range.lba, range.count, buffer, BLOCK_DATA);
		page_free(buffer, ORDER);
	}
	is_counting = false;
	printk("disk-share: another task %s\n", counted ? "ran" : "did not run");
	return end("disk-share", &range, error);
}

/* Like verify, but sector by sector into this task's stack, which DMA does not reach. */
static int run_stack(int count, char **words)
{
	struct range range;
	uint64_t sector[WORDS];
	int error = 0;

	if (!parse(count, words, &range))
		return EXIT_FAILURE;
	for (unsigned i = 0; i < range.count && error == 0; i++) {
		error = block_read(range.device, range.lba + i, 1, sector, BLOCK_DATA);
		if (error == 0 && !is_right(&range, i, 1, sector))
			error = -EUCLEAN;
	}
	return end("disk-stack", &range, error);
}

/* ---- accidents ---- */

#define NO_DEVICE 0x3e0 /* no device answers at these ports: they read 0xff */

/* Takes the cable of the drive's channel away, or puts it back. */
static int run_unplug(int count, char **words)
{
	static uint16_t command_block, control;
	struct block_device *device = block_find(words[1]);

	if (!device)
		return EXIT_FAILURE;
	struct ata_channel *channel = ((struct ata_drive *)device->driver)->channel;

	if (channel->command_block == NO_DEVICE) {
		channel->command_block = command_block;
		channel->control = control;
	} else {
		command_block = channel->command_block;
		control = channel->control;
		channel->command_block = NO_DEVICE;
		channel->control = NO_DEVICE + 6;
	}
	return EXIT_SUCCESS;
}

/* The drives of the channel do not interrupt, and the driver does not know it. */
static int run_silence(int count, char **words)
{
	struct block_device *device = block_find(words[1]);

	if (!device)
		return EXIT_FAILURE;
	out8(((struct ata_drive *)device->driver)->channel->control, 0x02);
	return EXIT_SUCCESS;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "write", "DRIVE LBA [SECTORS [SEED]]", "write sectors that say where they are", 2,
	  run_write },
	{ "verify", "DRIVE LBA [SECTORS [SEED]]", "read what `write` wrote", 2, run_verify },
	{ "scatter", "DRIVE LBA [SECTORS [SEED]]", "the same by many pieces of memory", 2,
	  run_scatter },
	{ "flush", "DRIVE", "the drive empties its write cache", 1, run_flush },
	{ "disk-mode", "[MODE]", "PIO or DMA, polled or interrupts", 0, run_mode },
	{ "disk-share", "DRIVE LBA [SECTORS]", "read: does another task run meanwhile?", 2,
	  run_share },
	{ "disk-stack", "DRIVE LBA [SECTORS [SEED]]", "verify, by sectors on the stack", 2,
	  run_stack },
	{ "disk-unplug", "DRIVE", "no drive answers there, or again", 1, run_unplug },
	{ "disk-silence", "DRIVE", "its channel loses interrupts", 1, run_silence },
	{ "disk-load", "DRIVE [SECONDS]", "write and verify, while the mode changes", 1, run_load },
};
