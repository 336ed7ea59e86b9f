/*
 * Finds the drives and their capabilities (ATA/ATAPI-6, 8.15: IDENTIFY DEVICE).
 *
 * A drive answers IDENTIFY with 256 words. A text has two characters a word, the first one in the
 * high byte:
 *
 *	words 27, 28, 29	0x5145 0x4d55 0x2048		"QE" "MU" " H"
 *
 * and a number that needs more than one word has its low word first:
 *
 *	words 60, 61		0x5eb0 0xe8e0			0xe8e05eb0 sectors
 *
 * A channel without drives floats: all registers read 0xff. A channel with one drive shows a status
 * of 0 for the absent one. A CD drive is never ready for the commands of disks, or aborts IDENTIFY.
 * Polls, because an absent drive raises no interrupt. Only at boot and after a reset.
 */
#include "drivers/disk/ata_drive.h"
#include "kernel/cpu/io.h"

#define COMMAND_SET_MULTIPLE 0xc6
#define COMMAND_IDENTIFY     0xec

#define MULTIPLE 16 /* sectors per DRQ, if the drive can */

/* Words of the IDENTIFY data: ATA/ATAPI-6, table 27; the last two: ATA/ATAPI-8, table 29. */
#define WORD_MODEL	   27
#define WORD_MULTIPLE	   47
#define WORD_CAPABILITIES  49
#define WORD_LBA28_SECTORS 60
#define WORD_COMMANDS	   83
#define WORD_EXTENSIONS	   84
#define WORD_LBA48_SECTORS 100
#define WORD_DISCARD	   169
#define WORD_ROTATION	   217 /* turns a minute; 0: it does not say, 1: it does not turn */

/* Padded with blanks, which are cut. */
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

static void learn(struct ata_drive *drive, const uint16_t *words)
{
	const uint16_t *large = words + WORD_LBA48_SECTORS;
	const uint16_t *small = words + WORD_LBA28_SECTORS;

	copy_model(drive->model, words + WORD_MODEL);
	drive->has_dma = words[WORD_CAPABILITIES] >> 8 & 1;
	drive->has_lba48 = words[WORD_COMMANDS] >> 10 & 1;
	drive->has_flush = words[WORD_COMMANDS] >> 12 & 1;
	drive->has_forced = words[WORD_EXTENSIONS] >> 6 & 1;
	drive->has_trim = drive->has_lba48 && drive->has_dma && (words[WORD_DISCARD] & 1);
	drive->block.is_rotational = words[WORD_ROTATION] != 1;
	if (drive->has_lba48)
		drive->block.sectors =
		    (uint64_t)large[2] << 32 | (uint32_t)large[1] << 16 | large[0];
	else
		drive->block.sectors = (uint32_t)small[1] << 16 | small[0];
	drive->multiple = (words[WORD_MULTIPLE] & 0xff) >= MULTIPLE ? MULTIPLE : 1;
}

bool ata_identify(struct ata_drive *drive)
{
	static const struct ata_command identify = { .code = COMMAND_IDENTIFY };
	uint16_t words[SECTOR_SIZE / 2];

	ata_select(drive, 0);
	uint8_t status = ata_poll(drive, ATA_BSY, ATA_DETECT_NS);

	if (!ata_is_idle(status))
		return false;
	ata_send(drive, &identify);
	status = ata_poll(drive, ATA_BSY, ATA_DETECT_NS);
	if (!ata_has_data(status)) {
		if (!ata_is_idle(status))
			ata_reset(drive->channel);
		return false;
	}
	ata_fetch(drive, words, 1);
	if (!(words[WORD_CAPABILITIES] >> 9 & 1)) /* no LBA: from before 1994 */
		return false;
	learn(drive, words);
	return true;
}

/* If a drive refuses, it continues with one sector at a time. */
void ata_use_multiple(struct ata_drive *drive)
{
	struct ata_command set = { .code = COMMAND_SET_MULTIPLE, .count = drive->multiple };

	if (drive->multiple > 1 && (!ata_is_idle(ata_send(drive, &set)) ||
				    !ata_is_done(ata_poll(drive, ATA_BSY, ATA_DETECT_NS))))
		drive->multiple = 1;
}
