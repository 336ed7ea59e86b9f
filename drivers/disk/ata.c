/*
 * ATA drives as block devices: which there are, requests, errors.
 *
 *	ata.c		requests, retries and messages
 *	ata_pio.c	moves the sectors of one command, word by word
 *	ata_command.c	sends a command, waits for the answer, resets a channel
 *	ata_identify.c	which drives there are
 *
 * A channel works for one drive at a time, on one command: a request holds the channel's mutex from
 * its first register to its end. So a request that fails can reset the channel without harm to
 * another one.
 *
 * Tasks only, which may sleep for as long as another one has the channel. At boot, before there are
 * tasks, there is nobody to take turns with.
 */
#include "drivers/disk/ata.h"

#include <stddef.h>

#include "drivers/disk/ata_drive.h"
#include "kernel/lib/errno.h"
#include "kernel/cpu/io.h"
#include "kernel/report/printk.h"
#include "kernel/task/task.h"

#define COMMAND_FLUSH	  0xe7
#define COMMAND_FLUSH_EXT 0xea

static struct ata_channel channels[] = {
	{ .command_block = 0x1f0, .control = 0x3f6 },
	{ .command_block = 0x170, .control = 0x376 },
};

#define CHANNEL_COUNT (sizeof(channels) / sizeof(channels[0]))

struct ata_drive ata_drives[] = {
	{ .block.name = "hda", .channel = &channels[0] },
	{ .block.name = "hdb", .channel = &channels[0], .is_slave = true },
	{ .block.name = "hdc", .channel = &channels[1] },
	{ .block.name = "hdd", .channel = &channels[1], .is_slave = true },
};
#define DRIVE_COUNT (sizeof(ata_drives) / sizeof(ata_drives[0]))

static void take(struct ata_channel *channel)
{
	if (current)
		mutex_lock(&channel->mutex);
}

static void give(struct ata_channel *channel)
{
	if (current)
		mutex_unlock(&channel->mutex);
}

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
	if (status == FLOATING)
		snprintk(text, size, "the drive is gone");
	else if (status & STATUS_BSY)
		snprintk(text, size, "the drive stays busy");
	else if (status & STATUS_DF)
		snprintk(text, size, "device fault");
	else if (status & STATUS_ERR)
		name_bits(error, text, size);
	else
		snprintk(text, size, "the drive has %s",
			 status & STATUS_DRQ ? "data that nobody asked for" : "moved too little");
}

/* Says what failed, leaves the channel usable, and gives the errno. */
static int fail(const struct ata_drive *drive, const char *what, uint8_t status)
{
	uint8_t error = in8(drive->channel->command_block + ERROR);
	char text[100] = "unknown error";

	describe(status, error, text, sizeof(text));
	printk("%s: %s failed: %s (status 0x%02x, error 0x%02x)\n", drive->block.name, what, text,
	       status, error);
	ata_reset(drive->channel);
	return (status & STATUS_BSY) && status != FLOATING ? -ETIMEDOUT : -EIO;
}

/* ---- requests ---- */

static int flush(struct ata_drive *drive)
{
	struct ata_command command = { .code =
					   drive->has_lba48 ? COMMAND_FLUSH_EXT : COMMAND_FLUSH };

	if (!drive->has_flush)
		return 0;
	uint8_t status = ata_send(drive, &command);

	if (ata_is_idle(status))
		status = ata_answer(drive, ATA_FLUSH_NS);
	return ata_is_done(status) ? 0 : fail(drive, "flush", status);
}

/* After an error the sectors that were moved before it count for nothing. */
static int transfer(struct ata_drive *drive, const struct block_transfer *transfer)
{
	uint8_t status = ata_pio(drive, transfer);
	char what[64];

	if (!ata_is_done(status)) {
		snprintk(what, sizeof(what), "%s of %u sectors at LBA %llu",
			 transfer->is_write ? "write" : "read", transfer->count, transfer->lba);
		return fail(drive, what, status);
	}
	return transfer->is_forced && !drive->has_forced ? flush(drive) : 0;
}

/* The range is valid: block.c has checked it. */
static int ata_transfer(struct block_device *device, const struct block_transfer *wanted)
{
	struct ata_drive *drive = device->driver;

	take(drive->channel);
	int result = transfer(drive, wanted);

	give(drive->channel);
	return result;
}

static int ata_flush(struct block_device *device)
{
	struct ata_drive *drive = device->driver;

	take(drive->channel);
	int result = flush(drive);

	give(drive->channel);
	return result;
}

/* ---- at boot ---- */

/* The structure is static, and registered only when all of it is known. */
static void detect(struct ata_drive *drive)
{
	static const struct block_ops ops = { .transfer = ata_transfer, .flush = ata_flush };

	if (!ata_identify(drive)) {
		printk("%s: no drive\n", drive->block.name);
		return;
	}
	ata_use_multiple(drive);
	drive->block.ops = &ops;
	drive->block.driver = drive;
	block_register(&drive->block);
	printk("%s: %s, %llu sectors (%llu MB), LBA%u\n", drive->block.name, drive->model,
	       drive->block.sectors, drive->block.sectors * SECTOR_SIZE >> 20,
	       drive->has_lba48 ? 48 : 28);
}

/* An absent channel costs nothing: it reads as 0xff. */
void ata_initialize(void)
{
	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		ata_reset(&channels[i]);
	for (unsigned i = 0; i < DRIVE_COUNT; i++)
		detect(&ata_drives[i]);
}
