/*
 * Bus-master DMA: the controller moves the words, and the processor is free meanwhile (Programming
 * Interface for Bus Master IDE Controller, revision 1.0; Intel 82371SB, PIIX3).
 *
 * Each channel has three registers, and a table in memory that says where the sectors go. Memory
 * need not be contiguous, but no entry may cross a multiple of 64 KiB:
 *
 *	physical 0x0013f000, 8 KiB	->	0x0013f000, 0x1000
 *						0x00140000, 0x1000, last
 *
 * A transfer is:
 *
 *	table's address; direction; write 1 to the error and interrupt bits, which clears them
 *	the drive's command (READ DMA and so on)
 *	start; wait for the drive; stop
 *
 * The drive says whether it went well: after an error of the drive the controller's error bit may
 * stay clear, and with the drive's interrupt disabled its interrupt bit never sets. So a task
 * that polls must poll the drive.
 *
 * DMA reaches memory that the kernel has in its direct map, at even addresses. Other memory (a
 * buffer on a task's stack) is moved word by word. The caller has the channel.
 */
#include "drivers/disk/ata_drive.h"
#include "drivers/disk/pci.h"
#include "kernel/cpu/io.h"
#include "kernel/report/printk.h"
#include "mm/page_alloc.h"

#define IDE_CLASS      0x0101
#define BUS_MASTER_BAR 4
#define SECOND_CHANNEL 8 /* offset of its registers */

/* Registers of a channel. */
#define COMMAND_REGISTER 0
#define STATUS_REGISTER	 2
#define TABLE_REGISTER	 4 /* 32 bits: physical */

#define START		0x01
#define TO_MEMORY	0x08 /* the direction: a read of the drive */
#define STATUS_FAULT	0x02 /* the controller could not reach the memory */
#define STATUS_HAS_INTR 0x04 /* the drive has raised its interrupt */

#define LAST	 0x8000u     /* of an entry: none follows */
#define BOUNDARY (64u << 10) /* no entry crosses a multiple of it */
#define ENTRIES	 (PAGE_SIZE / sizeof(struct ata_region))

/* An entry of the table. */
struct ata_region {
	uint32_t address; /* physical, even */
	uint16_t bytes;	  /* even; 0 means 64 KiB */
	uint16_t flags;
};

/* By [is_write][LBA48]. */
static const uint8_t codes[2][2] = { { 0xc8, 0x25 }, { 0xca, 0x35 } };
#define WRITE_DMA_FUA_EXT 0x3d

/* Its DMA has a sector of ranges; what it does is in ATA_FEATURES already. */
static const struct ata_command data_set_management = { .code = 0x06, .is_wide = true, .count = 1 };

void ata_dma_initialize(struct ata_channel *channels)
{
	uint32_t function;

	if (!pci_find(IDE_CLASS, &function))
		return;
	uint32_t bar = pci_read(function, PCI_BAR(BUS_MASTER_BAR));

	if (!(bar & 1) || (bar & 0xfffc) == 0) /* not ports, or none were assigned */
		return;
	pci_write(function, PCI_COMMAND,
		  (pci_read(function, PCI_COMMAND) & 0xffff) | PCI_COMMAND_IO | PCI_COMMAND_MASTER);
	for (unsigned i = 0; i < ATA_CHANNELS; i++) {
		channels[i].regions = page_alloc(0);
		if (channels[i].regions)
			channels[i].bus_master = (bar & 0xfffc) + i * SECOND_CHANNEL;
	}
}

/* EXERCISE S2 (interrupts and DMA, part 4): ata_dma_can and ata_dma, as ata_drive.h has them and
   the opening comment draws them. The table is drive->channel->regions, ENTRIES of them; a transfer
   has 256 sectors at most, in as many pieces, so they are enough. physical_address of what is below
   the direct map is huge. A transfer that is forced, by a drive that can (ata_can_force), is
   WRITE_DMA_FUA_EXT, an LBA48 command; one with is_discard is data_set_management. The answer is
   waited for ATA_READY_NS at most. If the drive still moves data when the time is over, *status has
   ATA_BSY set, so that it counts as late.

   Pitfalls: memory at an odd address, or across the end of the direct map. An entry of 64 KiB has
   the length 0. STATUS_FAULT may be set although the drive has nothing to say. The controller is
   stopped however the command ended. */
/* SOLUTION S2 { */
/* Can the controller reach all of the piece? */
static bool is_reachable(const struct block_piece *piece)
{
	uint32_t offset = physical_address(piece->buffer); /* huge below the direct map */

	return offset % 2 == 0 && offset < DIRECT_MAP_SIZE &&
	       piece->sectors * SECTOR_SIZE <= DIRECT_MAP_SIZE - offset;
}

bool ata_dma_can(const struct ata_drive *drive, const struct block_transfer *transfer)
{
	if (!drive->has_dma || !drive->channel->bus_master)
		return false;
	for (unsigned i = 0; i < transfer->piece_count; i++)
		if (!is_reachable(&transfer->pieces[i]))
			return false;
	return true;
}

/* 256 sectors have at most 256 pieces, and each of them crosses a boundary at most once, or is
 * longer: 512 entries are enough. */
static void make_table(struct ata_region *regions, const struct block_transfer *transfer)
{
	unsigned used = 0;

	for (unsigned i = 0; i < transfer->piece_count; i++) {
		uint32_t address = physical_address(transfer->pieces[i].buffer);
		uint32_t left = transfer->pieces[i].sectors * SECTOR_SIZE;

		while (left > 0 && used < ENTRIES) {
			uint32_t bytes = BOUNDARY - address % BOUNDARY;

			if (bytes > left)
				bytes = left;
			regions[used++] = (struct ata_region){ .address = address, .bytes = bytes };
			address += bytes;
			left -= bytes;
		}
	}
	regions[used - 1].flags = LAST;
}

static struct ata_command dma_command_for(const struct ata_drive *drive,
					  const struct block_transfer *transfer)
{
	bool is_forced = transfer->is_forced && ata_can_force(drive);
	bool is_wide = ata_needs_lba48(transfer) || is_forced;

	if (transfer->is_discard)
		return data_set_management;
	return (struct ata_command){
		.code = is_forced ? WRITE_DMA_FUA_EXT : codes[transfer->is_write][is_wide],
		.is_wide = is_wide,
		.count = transfer->count,
		.lba = transfer->lba,
	};
}

/* The direction is given before the start, and again with it. */
bool ata_dma(const struct ata_drive *drive, const struct block_transfer *transfer, uint8_t *status)
{
	struct ata_command command = dma_command_for(drive, transfer);
	uint16_t port = drive->channel->bus_master;
	uint8_t direction = transfer->is_write ? 0 : TO_MEMORY;

	make_table(drive->channel->regions, transfer);
	out32(port + TABLE_REGISTER, physical_address(drive->channel->regions));
	out8(port + COMMAND_REGISTER, direction);
	out8(port + STATUS_REGISTER, STATUS_FAULT | STATUS_HAS_INTR);
	*status = ata_send(drive, &command);
	if (!ata_is_idle(*status))
		return false;
	out8(port + COMMAND_REGISTER, direction | START);
	*status = ata_answer(drive, ATA_BSY | ATA_DRQ, ATA_READY_NS);
	out8(port + COMMAND_REGISTER, direction);
	if (*status & ATA_DRQ) /* the time is over: it still moves data */
		*status |= ATA_BSY;
	return ata_is_done(*status) && !(in8(port + STATUS_REGISTER) & STATUS_FAULT);
}
/* } SOLUTION S2 */
