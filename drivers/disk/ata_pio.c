/*
 * Programmed input and output: the processor moves each word (ATA/ATAPI-6, 9.5 and 9.6).
 *
 *	read	send the command; repeat: wait for DRQ, then read a block of sectors from DATA
 *	write	send the command; repeat: wait for DRQ, then write a block of sectors to DATA;
 *		at last wait until the drive is no longer busy: only then is it known to be good
 *
 * A block is one sector; after READ MULTIPLE and WRITE MULTIPLE it is `multiple` of them, the last
 * one what is left. A transfer is one command, whatever the pieces of its memory are, so that the
 * drive, and a trace of it, sees what the kernel asked for.
 *
 * The drive interrupts before each block, except the first of a write, and at the end of a write.
 * It is done with a read when the last word has been fetched. The caller has the channel.
 */
#include "drivers/disk/ata_drive.h"
#include "kernel/cpu/io.h"

/* By [is_write][with blocks][LBA48]. */
static const uint8_t codes[2][2][2] = {
	{ { 0x20, 0x24 }, { 0xc4, 0x29 } }, /* READ SECTORS, MULTIPLE */
	{ { 0x30, 0x34 }, { 0xc5, 0x39 } }, /* WRITE SECTORS, MULTIPLE */
};
#define WRITE_MULTIPLE_FUA_EXT 0xce

/* Where in the pieces the next sector goes. */
struct place {
	const struct block_piece *piece;
	unsigned sector; /* in the piece */
};

void ata_fetch(const struct ata_drive *drive, void *buffer, unsigned sectors)
{
	uint32_t words = sectors * SECTOR_SIZE / 2;

	__asm__ volatile("cld; rep insw"
			 : "+D"(buffer), "+c"(words)
			 : "d"((uint16_t)(drive->channel->command_block + ATA_DATA))
			 : "memory");
}

/* The other direction. */
static void write_data(const struct ata_drive *drive, const void *buffer, unsigned sectors)
{
	uint32_t words = sectors * SECTOR_SIZE / 2;

	__asm__ volatile("cld; rep outsw"
			 : "+S"(buffer), "+c"(words)
			 : "d"((uint16_t)(drive->channel->command_block + ATA_DATA))
			 : "memory");
}

/* Moves a block, which may be in several pieces. */
static void move(const struct ata_drive *drive, struct place *place, unsigned sectors,
		 bool is_write)
{
	while (sectors > 0) {
		unsigned here = place->piece->sectors - place->sector;
		uint8_t *buffer = (uint8_t *)place->piece->buffer + place->sector * SECTOR_SIZE;

		if (here > sectors)
			here = sectors;
		if (is_write)
			write_data(drive, buffer, here);
		else
			ata_fetch(drive, buffer, here);
		sectors -= here;
		place->sector += here;
		if (place->sector == place->piece->sectors)
			*place = (struct place){ .piece = place->piece + 1 };
	}
}

/* EXERCISE S1 (PIO, part 3): ata_pio (ata_drive.h), as the opening comment says; move() moves one
   block. Which of the commands: LBA48 if ata_needs_lba48 says so; a command with blocks if the
   drive has them (`multiple` is more than 1) and there is more than one sector. A transfer that is
   forced, by a drive that can (ata_can_force), is WRITE_MULTIPLE_FUA_EXT, an LBA48 command.

   ata_answer waits where the drive will interrupt; where it will not, ata_poll waits; each of them
   for ATA_READY_NS at most. Each status must be looked at: an error before a block ends the
   command, and an error of the last block is seen in the status after it only.

   Pitfalls: after a block, too, BSY may come 400 ns late. The last block may be short, and a block
   may be in several pieces of memory. */
/* SOLUTION S1 { */
/* The command for a transfer of 1 to 256 sectors. */
static struct ata_command command_for(const struct ata_drive *drive,
				      const struct block_transfer *transfer)
{
	bool is_wide = ata_needs_lba48(transfer);
	bool has_blocks = drive->multiple > 1 && transfer->count > 1;
	struct ata_command command = {
		.code = codes[transfer->is_write][has_blocks][is_wide],
		.is_wide = is_wide,
		.count = transfer->count,
		.lba = transfer->lba,
	};

	if (transfer->is_forced && ata_can_force(drive)) {
		command.code = WRITE_MULTIPLE_FUA_EXT;
		command.is_wide = true;
	}
	return command;
}

/* After a block has been moved: the drive's next status. After the last one of a read the drive has
 * nothing to do, and does not interrupt. */
static uint8_t after_block(const struct ata_drive *drive, bool is_end_of_read)
{
	ata_settle(drive); /* BSY may come late */
	return is_end_of_read ? ata_poll(drive, ATA_BSY, ATA_READY_NS)
			      : ata_answer(drive, ATA_BSY, ATA_READY_NS);
}

bool ata_pio(const struct ata_drive *drive, const struct block_transfer *transfer, uint8_t *status)
{
	struct ata_command command = command_for(drive, transfer);
	struct place place = { .piece = transfer->pieces };
	unsigned block = transfer->count > 1 ? drive->multiple : 1;

	*status = ata_send(drive, &command);
	if (!ata_is_idle(*status))
		return false;
	*status = transfer->is_write ? ata_poll(drive, ATA_BSY, ATA_READY_NS)
				     : ata_answer(drive, ATA_BSY, ATA_READY_NS);
	for (unsigned left = transfer->count; left > 0; left -= block) {
		if (!ata_has_data(*status))
			return false;
		if (block > left)
			block = left;
		move(drive, &place, block, transfer->is_write);
		*status = after_block(drive, !transfer->is_write && left == block);
	}
	return ata_is_done(*status);
}
/* } SOLUTION S1 */
