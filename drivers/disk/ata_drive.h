/* Inside the ATA driver: channels and drives, their registers, and the functions that its files
 * share. */
#pragma once

#include "drivers/disk/block.h"
#include "kernel/task/lock.h"
#include "kernel/task/timer.h"

/* Registers, as offsets from the channel's command block. */
#define ATA_DATA     0 /* 16 bits; the others have 8 */
#define ATA_ERROR    1 /* why a command failed: valid while ATA_ERR is set */
#define ATA_FEATURES 1 /* when it is written: details of some commands */
#define ATA_COUNT    2 /* sectors; 0 means 256 */
#define ATA_LBA_LOW  3 /* bits 0 to 7 of the address */
#define ATA_LBA_MID  4 /* bits 8 to 15 */
#define ATA_LBA_HIGH 5 /* bits 16 to 23 */
#define ATA_DEVICE   6 /* which of the two drives; bits 24 to 27 of an LBA28 address */
#define ATA_STATUS   7 /* when it is read; that also withdraws the drive's interrupt */
#define ATA_COMMAND  7 /* when it is written: that starts the command */

#define ATA_ERR	     0x01 /* the command failed: see ATA_ERROR */
#define ATA_DRQ	     0x08 /* the drive waits for the processor to move data */
#define ATA_DF	     0x20 /* the drive itself failed */
#define ATA_RDY	     0x40 /* there is a disk that accepts commands */
#define ATA_BSY	     0x80 /* busy: no other bit is valid */
#define ATA_FLOATING 0xff /* what an empty bus reads as */

/* A drive that sleeps may take seconds to spin up; after this time it is given up. */
#define ATA_READY_NS  5000000000ull
#define ATA_FLUSH_NS  30000000000ull /* a whole cache, sector by sector */
#define ATA_DETECT_NS 500000000ull

#define ATA_CHANNELS 2

struct ata_region;

/* Two drives on one cable: one of them works at a time. */
struct ata_channel {
	uint16_t command_block; /* port of the first register */
	uint16_t control;	/* port: reads as STATUS, written it is the device control */
	struct mutex mutex;	/* held from a command's first register to its end */
	bool has_interrupts;	/* else this driver polls */
	bool has_dma;

	/* ata_wait.c: shared with the handler of the channel's IRQ. */
	volatile bool is_answered; /* the drive has interrupted since this was last false */
	volatile bool is_late;	   /* the alarm has gone off */
	struct wait_queue waiting;
	struct timer alarm;

	/* ata_dma.c */
	uint16_t bus_master;	    /* port of the first register; 0: there is no bus master */
	struct ata_region *regions; /* a page */

	struct block_range ranges[BLOCK_RANGES]; /* of a discard: ata.c */
};

struct ata_drive {
	struct block_device block;
	struct ata_channel *channel;
	bool is_slave; /* the second drive of the channel */
	bool has_lba48;
	bool has_dma;
	bool has_flush;
	bool has_forced;   /* FUA commands */
	bool has_trim;	   /* DATA SET MANAGEMENT, which discards */
	uint16_t multiple; /* sectors per DRQ; 1: no READ MULTIPLE; 0: no drive */
	char model[41];
};

/* A command's registers. For commands without an address lba and count are 0. */
struct ata_command {
	uint8_t code;
	bool is_wide; /* LBA48: the registers are written twice */
	unsigned count;
	uint64_t lba;
};

/* The last address of LBA28, 0x0fffffff, is refused by some drives: it is asked for by LBA48. */
static inline bool ata_needs_lba48(const struct block_transfer *transfer)
{
	return transfer->lba + transfer->count > 0x0fffffff;
}

/* Has the drive commands for forced writes (safe when they end), by PIO and by DMA? */
static inline bool ata_can_force(const struct ata_drive *drive)
{
	return drive->has_forced && drive->multiple > 1;
}

/* ---- tests of a status ---- */

/* Neither busy nor with data to move: the drive accepts a command. */
static inline bool ata_is_idle(uint8_t status)
{
	return (status & (ATA_BSY | ATA_RDY | ATA_DRQ)) == ATA_RDY;
}

/* The command has ended, and well. */
static inline bool ata_is_done(uint8_t status)
{
	return ata_is_idle(status) && !(status & (ATA_DF | ATA_ERR));
}

/* The drive waits for data to be moved, and nothing went wrong. */
static inline bool ata_has_data(uint8_t status)
{
	return (status & (ATA_BSY | ATA_DRQ | ATA_DF | ATA_ERR)) == ATA_DRQ;
}

/* No drive answers: an empty channel floats, and an absent second drive shows 0. */
static inline bool ata_is_absent(uint8_t status)
{
	return status == ATA_FLOATING || status == 0;
}

/* In all that follows the caller has the channel. */

/* ---- ata_command.c ---- */

/* Reads the other status register four times: 400 ns, after which the drive's status is valid. */
void ata_settle(const struct ata_drive *drive);

/* Chooses the drive for all registers that follow; the lower four bits belong to an LBA28 address.
 */
void ata_select(const struct ata_drive *drive, uint8_t lba_bits);

/* Sends the command as soon as the channel is idle. Returns the status before that: nothing was
 * sent unless it is idle. */
uint8_t ata_send(const struct ata_drive *drive, const struct ata_command *command);

/* From now on the drives raise interrupts, or not, as the channel says. */
void ata_tell_interrupts(const struct ata_channel *channel);

/* Both drives drop their commands, and data that was not fetched; they may forget SET MULTIPLE,
 * too. Takes some milliseconds. */
void ata_reset(struct ata_channel *channel);

/* ---- ata_wait.c ---- */

/* Polls while one of the bits `busy` is set, at most for timeout_ns; after a while, and if the
 * channel has interrupts, it sleeps in between. Returns the status, with one of them after the
 * time-out. A channel that floats is not waited for. */
uint8_t ata_poll(const struct ata_drive *drive, uint8_t busy, uint64_t timeout_ns);

/* The same, where the drive interrupts when it is no longer busy: sleeps, or polls. */
uint8_t ata_answer(const struct ata_drive *drive, uint8_t busy, uint64_t timeout_ns);

/* Registers the handlers. */
void ata_interrupts_initialize(struct ata_channel *channels);

/* ---- ata_identify.c ---- */

/* Is there a disk? Then fills in what it can do. Waits up to ATA_DETECT_NS for each answer. */
bool ata_identify(struct ata_drive *drive);

/* The drive moves several sectors per DRQ from now on, if it can: after a reset, too. */
void ata_use_multiple(struct ata_drive *drive);

/* ---- ata_pio.c ---- */

/* Reads words from the drive's DATA register into the sectors. */
void ata_fetch(const struct ata_drive *drive, void *buffer, unsigned sectors);

/* Moves the sectors of one command through DATA. Returns whether all of it went well; *status is
 * the drive's last one. */
bool ata_pio(const struct ata_drive *drive, const struct block_transfer *transfer, uint8_t *status);

/* ---- ata_dma.c ---- */

/* Finds the channels' bus masters, if there are any. */
void ata_dma_initialize(struct ata_channel *channels);

/* Can the controller reach all of the transfer's memory, and the drive use DMA? */
bool ata_dma_can(const struct ata_drive *drive, const struct block_transfer *transfer);

/* Moves the sectors of one command by DMA, and returns what ata_pio does. */
bool ata_dma(const struct ata_drive *drive, const struct block_transfer *transfer, uint8_t *status);

/* ---- ata_mode.c ---- */

/* The mode that the setting "disk" names; without it, the first one. May sleep. */
void ata_modes_initialize(struct ata_channel *channels);
