/*
 * ATA drives as block devices: detection, requests, errors.
 *
 *	ata.c		requests, retries, messages
 *	ata_mode.c	the four modes
 *	ata_pio.c	moves the sectors of one command, word by word
 *	ata_dma.c	lets the controller move them
 *	ata_command.c	sends a command, resets a channel
 *	ata_wait.c	waits for the answer: polls, or sleeps until the interrupt
 *	ata_identify.c	which drives there are
 *
 * A channel works for one drive at a time, on one command: a request holds the channel's mutex from
 * its first register to its end. So a request that fails can reset the channel without harm to
 * another one, and a mode changes between two requests.
 *
 * A request that fails is tried again, in a bounded way:
 *
 *	the drive reports an error	several sectors: each of them by itself, up to the bad one;
 *					a sector: once more, then -EIO
 *	the drive does not answer	once more after a reset, then -ETIMEDOUT
 *	the drive is gone		-EIO, at once
 *
 * A discard is not tried again: it is advice, and the caller goes on.
 *
 * Each failure is a line on the console. Tasks only: they may sleep for as long as another one has
 * the channel.
 */
#include "drivers/disk/ata.h"

#include "drivers/disk/ata_drive.h"
#include "drivers/disk/ata_mode.h"
#include "drivers/disk/partition.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/cpu/io.h"
#include "kernel/report/printk.h"

#define FEATURE_TRIM	  0x01 /* of DATA SET MANAGEMENT: ATA/ATAPI-8, 7.10 */
#define COMMAND_FLUSH	  0xe7
#define COMMAND_FLUSH_EXT 0xea

static struct ata_channel channels[ATA_CHANNELS] = {
	{ .command_block = 0x1f0, .control = 0x3f6 },
	{ .command_block = 0x170, .control = 0x376 },
};

static struct ata_drive drives[] = {
	{ .block = { .name = "hda", .number = 3 << 8 }, .channel = &channels[0] },
	{ .block = { .name = "hdb", .number = 3 << 8 | 64 },
	  .channel = &channels[0],
	  .is_slave = true },
	{ .block = { .name = "hdc", .number = 22 << 8 }, .channel = &channels[1] },
	{ .block = { .name = "hdd", .number = 22 << 8 | 64 },
	  .channel = &channels[1],
	  .is_slave = true },
};

#define DRIVES (sizeof(drives) / sizeof(drives[0]))

/* ---- what went wrong ---- */

/* The names of the bits of the error register: ATA/ATAPI-6, 6.2 and 7.14. */
static void name_bits(uint8_t error, char *text, size_t size)
{
	static const char *const bits[] = { "address mark not found", "no media",
					    "command aborted",	      "media change request",
					    "sector not found",	      "media changed",
					    "uncorrectable data",     "bad block or CRC" };

	for (int bit = 7, length = 0; bit >= 0; bit--)
		if ((error >> bit & 1) && length < (int)size)
			length += snprintk(text + length, size - length, "%s%s", length ? ", " : "",
					   bits[bit]);
}

/* In words. */
static void describe(uint8_t status, uint8_t error, char *text, size_t size)
{
	if (ata_is_absent(status))
		snprintk(text, size, "the drive is gone");
	else if (status & ATA_BSY)
		snprintk(text, size, "the drive stays busy");
	else if (status & ATA_DF)
		snprintk(text, size, "device fault");
	else if (status & ATA_ERR)
		name_bits(error, text, size);
	else
		snprintk(text, size, "the drive has %s",
			 status & ATA_DRQ ? "data that nobody asked for" : "moved too little");
}

static void reset(struct ata_channel *channel)
{
	ata_reset(channel);
	for (unsigned i = 0; i < DRIVES; i++)
		if (drives[i].channel == channel)
			ata_use_multiple(&drives[i]);
}

static void tell(const struct ata_drive *drive, const char *what, uint8_t status, uint8_t error)
{
	char text[100] = "unknown error";

	describe(status, error, text, sizeof(text));
	printk("%s: %s failed: %s (status 0x%02x, error 0x%02x)\n", drive->block.name, what, text,
	       status, error);
}

/* EXERCISE S1 (PIO, part 4): fail is called when a command has failed; `status` is the last one.
   It reports what failed, with the drive's ERROR register; leaves the channel as the next command
   needs it, whatever this one has left there; and returns the errno: -ENODEV for a drive that is
   absent, -ETIMEDOUT for one that is still busy, else -EIO.

   Pitfalls: an absent drive reads as busy, too. A reset may change what ERROR says. */
/* SOLUTION S1 { */
static int fail(const struct ata_drive *drive, const char *what, uint8_t status)
{
	tell(drive, what, status, in8(drive->channel->command_block + ATA_ERROR));
	reset(drive->channel);
	if (ata_is_absent(status))
		return -ENODEV;
	return status & ATA_BSY ? -ETIMEDOUT : -EIO;
}
/* } SOLUTION S1 */

/* ---- requests: the caller has the channel ---- */

static int flush_drive(const struct ata_drive *drive)
{
	struct ata_command command = { .code =
					   drive->has_lba48 ? COMMAND_FLUSH_EXT : COMMAND_FLUSH };

	if (!drive->has_flush)
		return 0;
	uint8_t status = ata_send(drive, &command);

	if (ata_is_idle(status))
		status = ata_answer(drive, ATA_BSY, ATA_FLUSH_NS);
	return ata_is_done(status) ? 0 : fail(drive, "flush", status);
}

/* One command. After an error the sectors that were moved before it do not count. */
static int attempt(const struct ata_drive *drive, const struct block_transfer *transfer)
{
	bool is_dma = drive->channel->has_dma && ata_dma_can(drive, transfer);
	uint8_t status;
	char what[64];

	if (is_dma ? ata_dma(drive, transfer, &status) : ata_pio(drive, transfer, &status))
		return 0;
	snprintk(what, sizeof(what), "%s of %u sectors at LBA %llu",
		 transfer->is_write ? "write" : "read", transfer->count, transfer->lba);
	return fail(drive, what, status);
}

/* The drive gets a sector of ranges; those of length 0 are ignored. Both drives of a channel get
 * FEATURES, and only this command looks at it. By DMA in each mode. */
static int discard_ranges(const struct ata_drive *drive, const struct block_transfer *wanted)
{
	const struct block_range *ranges = wanted->pieces[0].buffer;
	struct ata_channel *channel = drive->channel;
	struct block_piece piece = { channel->ranges, 1 };
	struct block_transfer transfer = {
		.count = 1, .is_write = true, .is_discard = true, .pieces = &piece, .piece_count = 1
	};
	uint8_t status;
	char what[64];

	memset(channel->ranges, 0, sizeof(channel->ranges));
	memcpy(channel->ranges, ranges, wanted->count * sizeof(*ranges));
	out8(channel->command_block + ATA_FEATURES, FEATURE_TRIM);
	if (ata_dma(drive, &transfer, &status))
		return 0;
	snprintk(what, sizeof(what), "discard of %u ranges from LBA %llu on", wanted->count,
		 (uint64_t)ranges->lba);
	return fail(drive, what, status);
}

/* A drive that is gone is not asked again. */
static int attempt_twice(const struct ata_drive *drive, const struct block_transfer *transfer)
{
	int result = attempt(drive, transfer);

	return result == -EIO || result == -ETIMEDOUT ? attempt(drive, transfer) : result;
}

/* Up to the first sector that fails twice, which the message names. */
static int each_sector(const struct ata_drive *drive, const struct block_transfer *transfer)
{
	struct block_piece sector = { .sectors = 1 };
	struct block_transfer one = *transfer;
	int result = 0;

	one.count = one.piece_count = 1;
	one.pieces = &sector;
	for (unsigned i = 0; i < transfer->piece_count; i++) {
		sector.buffer = transfer->pieces[i].buffer;
		for (unsigned left = transfer->pieces[i].sectors; left > 0 && !result; left--) {
			result = attempt_twice(drive, &one);
			sector.buffer = (uint8_t *)sector.buffer + SECTOR_SIZE;
			one.lba++;
		}
	}
	return result;
}

/* The range is valid: block.c has checked it. */
static int perform_transfer(const struct ata_drive *drive, const struct block_transfer *transfer)
{
	if (transfer->is_discard)
		return discard_ranges(drive, transfer);
	if (transfer->count == 0)
		return flush_drive(drive);
	int result = attempt(drive, transfer);

	if (result == -EIO && transfer->count > 1)
		result = each_sector(drive, transfer);
	else if (result == -EIO || result == -ETIMEDOUT)
		result = attempt(drive, transfer);
	if (result == 0 && transfer->is_forced && !ata_can_force(drive))
		result = flush_drive(drive);
	return result;
}

/* One at a time. */
static int ata_transfer(struct block_device *device, const struct block_transfer *transfer)
{
	struct ata_drive *drive = device->driver;

	mutex_lock(&drive->channel->mutex);
	int result = perform_transfer(drive, transfer);

	mutex_unlock(&drive->channel->mutex);
	return result == -ENODEV ? -EIO : result;
}

/* ---- at boot ---- */

/* The structure is static, and registered when all of it is known. */
static void add_drive(struct ata_drive *drive)
{
	static const struct block_ops ops = { .transfer = ata_transfer };

	ata_use_multiple(drive);
	drive->block.ops = &ops;
	drive->block.driver = drive;
	block_register(&drive->block);
	printk("%s: %s, %llu sectors (%llu MB), LBA%u\n", drive->block.name, drive->model,
	       drive->block.sectors, drive->block.sectors * SECTOR_SIZE >> 20,
	       drive->has_lba48 ? 48 : 28);
	partitions_register(&drive->block);
}

/* Polls, because kmain must not sleep; the mode comes last. Detection of a drive may reset the
 * other drive of the channel, so the drives are used later. */
void ata_initialize(void)
{
	bool is_there[DRIVES];

	for (unsigned i = 0; i < ATA_CHANNELS; i++)
		ata_tell_interrupts(&channels[i]);
	for (unsigned i = 0; i < DRIVES; i++)
		is_there[i] = ata_identify(&drives[i]);
	for (unsigned i = 0; i < DRIVES; i++)
		if (is_there[i])
			add_drive(&drives[i]);
		else
			printk("%s: no drive\n", drives[i].block.name);
	ata_dma_initialize(channels);
	for (unsigned i = 0; i < DRIVES; i++)
		drives[i].block.can_discard = drives[i].has_trim && drives[i].channel->bus_master;
	ata_interrupts_initialize(channels);
	ata_modes_initialize(channels);
	printk("disks: %s\n", ata_mode());
}
