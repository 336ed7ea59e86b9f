/*
 * ATA drives, by programmed input, polled (ATA/ATAPI-6, T13/1410D, sections 7 to 9).
 *
 * A channel has eight registers, which its two drives share; bit 4 of DEVICE selects one of them. A
 * read of `count` sectors:
 *
 *	wait	BSY clear: the drive has finished the command before
 *	write	DEVICE, COUNT, LBA_LOW, LBA_MID, LBA_HIGH
 *	write	COMMAND
 *	repeat	wait until BSY is clear and DRQ set, then read 256 words a sector from DATA
 *
 * READ SECTORS transfers one sector per wait, READ MULTIPLE up to 16. A request is one command, so
 * that the drive, and a trace of it, sees what the kernel asked for.
 *
 * LBA28 has room for 28 bits of address, but the last of them, 0x0fffffff, is refused by some
 * drives: a drive that has no more than LBA28 has at most 0x0fffffff sectors, and never that
 * address. LBA48 fits twice as much into the same registers by remembering two writes of each: the
 * high half is written first.
 *
 * Every wait has a limit, because the drive may be broken. A drive that was only late still has the
 * sectors of the request that was given up, and would hand them over as the answer to the next one:
 *
 *	read 100	BSY for 5 seconds: given up, -ETIMEDOUT
 *	(later)		BSY clear, DRQ set: sector 100
 *	read 200	DRQ is set, the drive ignores the command, and DATA gives sector 100
 *
 * So a request that is given up ends with a reset of the channel, and no command is sent while BSY
 * or DRQ is set.
 *
 * The processor does nothing else while it waits: a driver with interrupts and DMA follows in the
 * storage lessons. One request at a time, not from interrupt handlers; the drive's own interrupt is
 * disabled.
 */
#include "drivers/disk/ata.h"

#include <stddef.h>

#include "drivers/disk/block.h"
#include "kernel/lib/errno.h"
#include "kernel/cpu/io.h"
#include "kernel/report/printk.h"
#include "kernel/task/time.h"

/* Registers, as offsets from the channel's command block. */
#define DATA	 0 /* 16 bits; the others have 8 */
#define ERROR	 1 /* why a command failed: valid while STATUS_ERR is set */
#define COUNT	 2 /* sectors; 0 means 256 */
#define LBA_LOW	 3 /* bits 0 to 7 of the address */
#define LBA_MID	 4 /* bits 8 to 15 */
#define LBA_HIGH 5 /* bits 16 to 23 */
#define DEVICE	 6 /* which of the two drives; bits 24 to 27 of an LBA28 address */
#define STATUS	 7 /* when it is read */
#define COMMAND	 7 /* when it is written: that starts the command */

/* In the device control register. */
#define NO_INTERRUPT 0x02 /* the drive does not raise its IRQ: this driver polls */
#define SOFT_RESET   0x04 /* while it is set, both drives of the channel are being reset */

#define STATUS_ERR 0x01 /* the command failed: see ERROR */
#define STATUS_DRQ 0x08 /* a sector, or a group of them, is ready in DATA */
#define STATUS_DF  0x20 /* the drive itself failed */
#define STATUS_BSY 0x80 /* busy: no other bit is valid */
#define FLOATING   0xff /* what an empty bus reads as */

#define DEVICE_LBA   0xe0 /* LBA addressing; bits 7 and 5 are one for old drives */
#define DEVICE_SLAVE 0x10 /* the second drive of the channel */

#define COMMAND_READ		  0x20
#define COMMAND_READ_EXT	  0x24
#define COMMAND_READ_MULTIPLE	  0xc4
#define COMMAND_READ_MULTIPLE_EXT 0x29
#define COMMAND_SET_MULTIPLE	  0xc6
#define COMMAND_IDENTIFY	  0xec

#define LBA28_SECTORS 0x0fffffffull
#define MULTIPLE      16 /* sectors handed over at a time */

/* A drive that sleeps may take seconds to spin up; one that takes longer than this is given up. */
#define READY_TIMEOUT_NS  5000000000ull
#define DETECT_TIMEOUT_NS 500000000ull

/* ATA/ATAPI-6, 9.2: how long SOFT_RESET stays set, and when after it the status is valid. */
#define RESET_PULSE_NS	5000ull
#define RESET_SETTLE_NS 2000000ull

struct ata_drive {
	struct block_device block;
	uint16_t command_block;
	uint16_t control;
	bool slave;
	bool lba48;
	uint16_t multiple; /* sectors per data transfer; 1: the drive has no READ MULTIPLE */
	char model[41];
};

static struct ata_drive drives[] = {
	{ .block.name = "hda", .command_block = 0x1f0, .control = 0x3f6, .slave = false },
	{ .block.name = "hdb", .command_block = 0x1f0, .control = 0x3f6, .slave = true },
	{ .block.name = "hdc", .command_block = 0x170, .control = 0x376, .slave = false },
	{ .block.name = "hdd", .command_block = 0x170, .control = 0x376, .slave = true },
};
#define DRIVE_COUNT (sizeof(drives) / sizeof(drives[0]))

/* Reads count 16-bit words from a port into buffer. */
static void in16_repeat(uint16_t port, void *buffer, unsigned count)
{
	__asm__ volatile("cld; rep insw" : "+D"(buffer), "+c"(count) : "d"(port) : "memory");
}

/* A drive needs 400 ns before its status is valid; reading the other status register takes about
 * 100. */
static void settle(const struct ata_drive *drive)
{
	for (unsigned i = 0; i < 4; i++)
		in8(drive->control);
}

/* Waits until the drive is not busy. Returns its status, which still has BSY set after the timeout.
 */
static uint8_t wait_while_busy(const struct ata_drive *drive, uint64_t timeout_ns)
{
	uint64_t start = time_ns();
	uint8_t status;

	do
		status = in8(drive->command_block + STATUS);
	while ((status & STATUS_BSY) && time_ns() - start < timeout_ns);
	return status;
}

/* Neither busy nor with data to transfer: the drive accepts a command. */
static bool is_idle(uint8_t status)
{
	return !(status & (STATUS_BSY | STATUS_DRQ));
}

/* Chooses the drive for all registers that follow; the lower four bits belong to an LBA28 address.
 */
static void select(const struct ata_drive *drive, uint8_t lba_bits)
{
	out8(drive->command_block + DEVICE,
	     DEVICE_LBA | (drive->slave ? DEVICE_SLAVE : 0) | lba_bits);
	settle(drive);
}

/* Selects the drive as soon as the channel's selected one is idle, and waits for it, too. Returns
 * the status of the drive that was waited for last: a command may be sent if that is idle. */
static uint8_t become_ready(const struct ata_drive *drive, uint64_t timeout_ns)
{
	uint8_t status = wait_while_busy(drive, timeout_ns);

	if (!is_idle(status))
		return status;
	select(drive, 0);
	return wait_while_busy(drive, timeout_ns);
}

/* Each register takes its lowest byte of the value. */
static void write_address(const struct ata_drive *drive, uint8_t count, uint32_t lba)
{
	out8(drive->command_block + COUNT, count);
	out8(drive->command_block + LBA_LOW, lba);
	out8(drive->command_block + LBA_MID, lba >> 8);
	out8(drive->command_block + LBA_HIGH, lba >> 16);
}

/* The drive sets BSY within 400 ns; a status read earlier would look idle. */
static void send_command(const struct ata_drive *drive, uint8_t command)
{
	out8(drive->command_block + COMMAND, command);
	settle(drive);
}

/* Asks the drive to hand over several sectors at a time. Returns whether it agreed. */
static bool set_multiple(const struct ata_drive *drive)
{
	if (!is_idle(become_ready(drive, READY_TIMEOUT_NS)))
		return false;
	out8(drive->command_block + COUNT, drive->multiple);
	send_command(drive, COMMAND_SET_MULTIPLE);
	return !(wait_while_busy(drive, DETECT_TIMEOUT_NS) & (STATUS_BSY | STATUS_ERR | STATUS_DF));
}

/* One that refuses goes on with one sector at a time. Drives that are absent have multiple 0. */
static void use_multiple(struct ata_drive *drive)
{
	if (drive->multiple > 1 && !set_multiple(drive))
		drive->multiple = 1;
}

static void wait_ns(uint64_t duration)
{
	uint64_t start = time_ns();

	while (time_ns() - start < duration)
		;
}

/* After a request that was given up: both drives of the channel drop their commands, and data that
 * was not read. They may forget SET MULTIPLE, too. A drive that is not idle after this fails its
 * next request, which comes here again. */
static void reset_channel(const struct ata_drive *drive)
{
	out8(drive->control, NO_INTERRUPT | SOFT_RESET);
	wait_ns(RESET_PULSE_NS);
	out8(drive->control, NO_INTERRUPT);
	wait_ns(RESET_SETTLE_NS);
	for (size_t i = 0; i < DRIVE_COUNT; i++)
		if (drives[i].control == drive->control)
			use_multiple(&drives[i]);
}

/* The names of the bits that say what went wrong: ATA/ATAPI-6, 6.2 and 7.14. */
static void describe_error(uint8_t status, uint8_t error, char *text, size_t size)
{
	static const char *const bits[] = { "address mark not found", "no media",
					    "command aborted",	      "media change request",
					    "sector not found",	      "media changed",
					    "uncorrectable data",     "bad block or CRC" };

	if (status & STATUS_BSY)
		snprintk(text, size, "the drive stays busy");
	else if (status & STATUS_DF)
		snprintk(text, size, "device fault");
	else if (!(status & STATUS_ERR))
		snprintk(text, size, "the drive has %s",
			 status & STATUS_DRQ ? "data that nobody asked for"
					     : "no data to hand over");
	else
		for (int bit = 7, length = 0; bit >= 0; bit--)
			if ((error >> bit & 1) && length < (int)size)
				length += snprintk(text + length, size - length, "%s%s",
						   length ? ", " : "", bits[bit]);
}

/* Says what failed, and gives the errno for it. */
static int failure(const struct ata_drive *drive, uint64_t lba, unsigned count, uint8_t status)
{
	uint8_t error = in8(drive->command_block + ERROR);
	char text[100] = "unknown error";

	describe_error(status, error, text, sizeof(text));
	printk("%s: read of %u sectors at LBA %llu failed: %s (status 0x%02x, error 0x%02x)\n",
	       drive->block.name, count, lba, text, status, error);
	return (status & STATUS_BSY) ? -ETIMEDOUT : -EIO;
}

/* Ready to hand over data, and nothing went wrong. */
static bool is_good(uint8_t status)
{
	return (status & (STATUS_BSY | STATUS_DRQ | STATUS_DF | STATUS_ERR)) == STATUS_DRQ;
}

/* Sends a read command for 1 to 256 sectors; 256 is written as 0 in LBA28. */
static void send_read(const struct ata_drive *drive, uint64_t lba, unsigned count)
{
	bool multiple = count > 1 && drive->multiple > 1;

	if (lba + count <= LBA28_SECTORS) {
		select(drive, lba >> 24 & 0x0f);
		write_address(drive, count, lba);
		send_command(drive, multiple ? COMMAND_READ_MULTIPLE : COMMAND_READ);
		return;
	}
	select(drive, 0);
	write_address(drive, count >> 8, lba >> 24); /* the registers remember two writes */
	write_address(drive, count, lba);
	send_command(drive, multiple ? COMMAND_READ_MULTIPLE_EXT : COMMAND_READ_EXT);
}

/* Fetches the sectors of one request. Returns whether all of them came; *status is the drive's last
 * one. */
static bool transfer(const struct ata_drive *drive, uint64_t lba, unsigned count, uint8_t *buffer,
		     uint8_t *status)
{
	unsigned chunk = count > 1 ? drive->multiple : 1;

	*status = become_ready(drive, READY_TIMEOUT_NS);
	if (!is_idle(*status))
		return false;
	send_read(drive, lba, count);
	for (unsigned left = count; left > 0; left -= chunk) {
		*status = wait_while_busy(drive, READY_TIMEOUT_NS);
		if (!is_good(*status))
			return false;
		if (chunk > left)
			chunk = left;
		in16_repeat(drive->command_block + DATA, buffer, chunk * SECTOR_SIZE / 2);
		buffer += chunk * SECTOR_SIZE;
		settle(drive); /* BSY of the next sector may come late */
	}
	return true;
}

/* The driver's side of block_read: the range is valid, count is 1 to 256. After an error the
 * sectors that arrived before it are in the buffer, and count for nothing. */
static int ata_read(struct block_device *device, uint64_t lba, unsigned count, void *buffer)
{
	const struct ata_drive *drive = device->driver;
	uint8_t status;
	int error;

	if (transfer(drive, lba, count, buffer, &status))
		return 0;
	error = failure(drive, lba, count, status);
	reset_channel(drive);
	return error;
}

/* Words of the IDENTIFY data: ATA/ATAPI-6, table 27. */
#define IDENTIFY_MODEL	       27
#define IDENTIFY_MULTIPLE      47
#define IDENTIFY_CAPABILITIES  49
#define IDENTIFY_LBA28_SECTORS 60
#define IDENTIFY_COMMAND_SET   83
#define IDENTIFY_LBA48_SECTORS 100

/* The model's name: two characters a word, the first one in the high byte, padded with blanks. */
static void copy_model(char *model, const uint16_t *words)
{
	unsigned length = 0;

	for (unsigned i = 0; i < 20; i++) {
		model[2 * i] = words[i] >> 8;
		model[2 * i + 1] = words[i] & 0xff;
	}
	for (unsigned i = 0; i < 40; i++)
		if (model[i] != ' ')
			length = i + 1;
	model[length] = '\0';
}

/* What IDENTIFY tells: words are little-endian, larger numbers have their low word first. */
static void learn(struct ata_drive *drive, const uint16_t *identity)
{
	const uint16_t *large = identity + IDENTIFY_LBA48_SECTORS;
	const uint16_t *small = identity + IDENTIFY_LBA28_SECTORS;

	copy_model(drive->model, identity + IDENTIFY_MODEL);
	drive->lba48 = identity[IDENTIFY_COMMAND_SET] >> 10 & 1; /* 48-bit address feature set */
	if (drive->lba48)
		drive->block.sectors =
		    (uint64_t)large[2] << 32 | (uint32_t)large[1] << 16 | large[0];
	else
		drive->block.sectors = (uint32_t)small[1] << 16 | small[0];
	drive->multiple = (identity[IDENTIFY_MULTIPLE] & 0xff) >= MULTIPLE ? MULTIPLE : 1;
}

/* Is a drive there that answers to IDENTIFY? An absent one floats, or shows a status of zero. */
static bool identify(const struct ata_drive *drive, uint16_t *identity)
{
	select(drive, 0);
	uint8_t status = in8(drive->command_block + STATUS);

	if (status == FLOATING || status == 0 ||
	    !is_idle(wait_while_busy(drive, DETECT_TIMEOUT_NS)))
		return false;
	write_address(drive, 0, 0);
	send_command(drive, COMMAND_IDENTIFY);
	status = wait_while_busy(drive, DETECT_TIMEOUT_NS);
	if (!is_good(status)) { /* no drive, or one that is not a disk: those abort it */
		if (!is_idle(status))
			reset_channel(drive);
		return false;
	}
	in16_repeat(drive->command_block + DATA, identity, 256);
	return identity[IDENTIFY_CAPABILITIES] >> 9 & 1; /* LBA */
}

/* The structure is static, and registered only when all of it is known. */
static void detect(struct ata_drive *drive)
{
	static const struct block_ops ops = { .read = ata_read };
	uint16_t identity[256];

	out8(drive->control, NO_INTERRUPT);
	if (!identify(drive, identity)) {
		printk("%s: no drive\n", drive->block.name);
		return;
	}
	learn(drive, identity);
	use_multiple(drive);
	drive->block.ops = &ops;
	drive->block.driver = drive;
	block_register(&drive->block);
	printk("%s: %s, %llu sectors (%llu MB), LBA%u\n", drive->block.name, drive->model,
	       drive->block.sectors, drive->block.sectors * SECTOR_SIZE >> 20,
	       drive->lba48 ? 48 : 28);
}

/* At boot, after the clock is known (the limits are times). An absent channel costs nothing: it
 * reads as 0xff. */
void ata_initialize(void)
{
	for (size_t i = 0; i < DRIVE_COUNT; i++)
		detect(&drives[i]);
}
