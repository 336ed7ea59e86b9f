/*
 * ATA commands: registers, their order, reset (ATA/ATAPI-6, T13/1410D, sections 7 and 9).
 *
 * A channel has eight registers, which its two drives share; bit 4 of DEVICE selects one of them.
 * A command for sectors is:
 *
 *	wait	BSY and DRQ clear: the drive has finished the command before
 *	write	DEVICE, COUNT, LBA_LOW, LBA_MID, LBA_HIGH
 *	write	COMMAND
 *	wait	400 ns, in which the drive sets BSY: a status read earlier would look idle
 *
 * LBA28 has room for 28 bits of address. LBA48 fits twice as much into the same registers by
 * remembering two writes of each: the high half is written first.
 *
 *	LBA 0x0123456789ab, 600 sectors		COUNT	LBA_LOW	LBA_MID	LBA_HIGH
 *	first write				0x02	0x45	0x23	0x01	 bits 24 to 47
 *	second write				0x58	0xab	0x89	...	 bits 0 to 23
 *
 * Every wait has a limit, because the drive may be broken. One that was only late still has the
 * sectors of the request that was given up, and would hand them over as the answer to the next:
 *
 *	read 100	BSY for 5 seconds: given up, -ETIMEDOUT
 *	(later)		BSY clear, DRQ set: sector 100
 *	read 200	DRQ is set, the drive ignores the command, and DATA gives sector 100
 *
 * So a task that gives a request up resets the channel, and no command is sent while BSY or DRQ is
 * set. An absent drive reads as ATA_FLOATING, in which BSY is set: nobody waits for that one.
 */
#include "drivers/disk/ata_drive.h"
#include "kernel/cpu/io.h"
#include "kernel/task/time.h"

/* In the device control register. */
#define NO_INTERRUPT 0x02 /* the drives do not raise their IRQ */
#define SOFT_RESET   0x04 /* while it is set, both drives of the channel are being reset */

#define DEVICE_LBA   0xe0 /* LBA addressing; bits 7 and 5 are one for old drives */
#define DEVICE_SLAVE 0x10

/* ATA/ATAPI-6, 9.2: how long SOFT_RESET stays set, and when after it the status is valid. */
#define RESET_PULSE_NS	5000ull
#define RESET_SETTLE_NS 2000000ull

/* EXERCISE S1 (PIO, part 1): ata_settle, ata_select and ata_send, as ata_drive.h has them and the
   opening comment draws them. ata_poll waits, with a limit, and returns a status.

   ata_send sends nothing unless the drive that is selected now, and then its own drive, are idle,
   each within ATA_READY_NS; an absent drive may be selected, and nobody waits for that one. The
   channel's is_answered is false when COMMAND is written.

   Pitfalls: what a drive shows in the first 400 ns after DEVICE or COMMAND was written is what it
   showed before. A count of 256 (65536 in LBA48) is written as 0. An LBA28 address has four bits in
   DEVICE, an LBA48 address has none there. */
/* SOLUTION S1 { */
void ata_settle(const struct ata_drive *drive)
{
	for (unsigned i = 0; i < 4; i++)
		in8(drive->channel->control);
}

void ata_select(const struct ata_drive *drive, uint8_t lba_bits)
{
	out8(drive->channel->command_block + ATA_DEVICE,
	     DEVICE_LBA | (drive->is_slave ? DEVICE_SLAVE : 0) | lba_bits);
	ata_settle(drive);
}

/* Each register takes its lowest byte of the value. */
static void write_address(const struct ata_drive *drive, uint8_t count, uint32_t lba)
{
	uint16_t port = drive->channel->command_block;

	out8(port + ATA_COUNT, count);
	out8(port + ATA_LBA_LOW, lba);
	out8(port + ATA_LBA_MID, lba >> 8);
	out8(port + ATA_LBA_HIGH, lba >> 16);
}

/* Selects the drive as soon as the channel's selected one, which may be an absent one, has nothing
 * to do, and waits for it, too. Returns the status of the drive that was waited for last. */
static uint8_t become_ready(const struct ata_drive *drive)
{
	uint8_t status = ata_poll(drive, ATA_BSY, ATA_READY_NS);

	if ((status & (ATA_BSY | ATA_DRQ)) && status != ATA_FLOATING)
		return status;
	ata_select(drive, 0);
	return ata_poll(drive, ATA_BSY, ATA_READY_NS);
}

/* A count of 256 is written as 0 in LBA28. */
uint8_t ata_send(const struct ata_drive *drive, const struct ata_command *command)
{
	uint8_t status = become_ready(drive);

	if (!ata_is_idle(status))
		return status;
	if (command->is_wide)
		write_address(drive, command->count >> 8, command->lba >> 24);
	else
		ata_select(drive, command->lba >> 24 & 0x0f);
	write_address(drive, command->count, command->lba);
	drive->channel->is_answered = false;
	out8(drive->channel->command_block + ATA_COMMAND, command->code);
	ata_settle(drive);
	return status;
}
/* } SOLUTION S1 */

void ata_tell_interrupts(const struct ata_channel *channel)
{
	out8(channel->control, channel->has_interrupts ? 0 : NO_INTERRUPT);
}

static void wait_ns(uint64_t duration)
{
	uint64_t start = time_ns();

	while (time_ns() - start < duration)
		;
}

/* EXERCISE S1 (PIO, part 2): ata_reset (ata_drive.h). SOFT_RESET is one for RESET_PULSE_NS, and the
   function returns RESET_SETTLE_NS after that. The drives' interrupts stay as ata_tell_interrupts
   sets them. A drive that is not idle after this fails its next request, which comes here again. */
/* SOLUTION S1 { */
void ata_reset(struct ata_channel *channel)
{
	out8(channel->control, NO_INTERRUPT | SOFT_RESET);
	wait_ns(RESET_PULSE_NS);
	ata_tell_interrupts(channel);
	wait_ns(RESET_SETTLE_NS);
}
/* } SOLUTION S1 */
