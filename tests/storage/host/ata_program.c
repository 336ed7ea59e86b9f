/*
 * The ATA driver as a program for the host, with the drives of ata_drives.c, and ata_kernel.c for
 * the rest of the kernel. Standard input is a script, a command a line; what is printed after
 * "# COMMAND" is the answer:
 *
 *	drive N SECTORS OPTIONS	a drive 0 to 3; l(BA48) d(MA) f(orced), m: blocks
 *	start MODE		ata_initialize
 *	read N LBA PIECES	pieces: sectors, or sectors@offset,sectors@offset; 3s: 3
 *				sectors that DMA does not reach
 *	write N LBA PIECES SEED
 *	forced N LBA PIECES SEED
 *	flush N
 *	peek N LBA COUNT	the drive's own contents
 *	bad N LBA KIND E TIMES	it fails; KIND: r or w; E: the ERROR register, 0: DF
 *	late N MICROSECONDS	the next command takes so long
 *	gone CHANNEL YES	its bus floats
 *	lose CHANNEL COUNT	this many interrupts get lost
 *	fault CHANNEL		its next DMA fails
 *	stray CHANNEL		an interrupt of nobody comes with its next command
 *	switch NAME		another task changes the mode during the next command
 *	refuse N		SET MULTIPLE is refused
 *	mode NAME
 *
 * "= RESULT CRC" is the errno, and the sum of what is in memory or on the drive. Lines that begin
 * with ! blame the driver, with @ are commands that a drive got, with > what the driver said; "~ N"
 * is how often the task slept.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/disk/ata.h"
#include "drivers/disk/ata_mode.h"
#include "drivers/disk/ata_drive.h"
#include "tests/host/question.h"
#include "tests/storage/host/ata_drives.h"
#include "tests/storage/host/ata_kernel.h"

#define FIRST	 4096 /* bytes of the arena before the pieces */
#define POISON	 0xcc
#define PATIENCE 200000000000ull /* ns that a command of the script may take */

static uint32_t crc(uint32_t sum, const uint8_t *bytes, unsigned count)
{
	static uint32_t table[256];

	for (unsigned i = 0; i < 256 && !table[255]; i++) {
		uint32_t entry = i;

		for (unsigned bit = 0; bit < 8; bit++)
			entry = entry >> 1 ^ (entry & 1 ? 0xedb88320u : 0);
		table[i] = entry;
	}
	sum = ~sum;
	for (; count > 0; count--)
		sum = sum >> 8 ^ table[(sum ^ *bytes++) & 255];
	return ~sum;
}

/* Sectors in memory, as the script says: "8", or "3@2,5@100": offsets in bytes from the last
 * piece's end, at first from the arena's beginning. */
static unsigned parse(char *text, struct block_piece *pieces, unsigned *sectors)
{
	unsigned count = 0;
	static uint8_t elsewhere[16 * 512];
	uint8_t *place = arena + FIRST;

	*sectors = 0;
	for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		char *offset = strchr(word, '@'), *end;

		place += offset ? strtoul(offset + 1, NULL, 0) : 0;
		unsigned here = strtoul(word, &end, 0);

		pieces[count] = (struct block_piece){ *end == 's' ? elsewhere : place, here };
		place += *end == 's' ? 0 : here * 512;
		*sectors += pieces[count++].sectors;
	}
	return count;
}

static bool is_poisoned(const struct block_piece *pieces, unsigned count)
{
	const uint8_t *at = arena;

	for (unsigned i = 0; i <= count; i++) {
		const uint8_t *end = i < count ? pieces[i].buffer : arena + ARENA_FOR_SECTORS;

		if (end < arena)
			continue;

		for (; at < end; at++)
			if (*at != POISON)
				return false;
		if (i < count)
			at = (uint8_t *)pieces[i].buffer + pieces[i].sectors * 512;
	}
	return true;
}

static void fill(const struct block_piece *pieces, unsigned count, uint64_t lba, uint32_t seed)
{
	for (unsigned i = 0; i < count; i++)
		for (unsigned sector = 0; sector < pieces[i].sectors; sector++, lba++)
			for (unsigned word = 0; word < 128; word++) {
				uint32_t value = word_of(seed, lba, word);

				memcpy((uint8_t *)pieces[i].buffer + sector * 512 + word * 4,
				       &value, 4);
			}
}

static void transfer(struct block_device *device, bool is_write, bool is_forced, uint64_t lba,
		     char *text, uint32_t seed)
{
	static struct block_piece pieces[256];
	unsigned sectors, count = parse(text, pieces, &sectors);
	struct block_transfer wanted = { .lba = lba,
					 .count = sectors,
					 .is_write = is_write,
					 .is_forced = is_forced,
					 .pieces = pieces,
					 .piece_count = count };
	uint32_t sum = 0;

	memset(arena, POISON, ARENA_FOR_SECTORS);
	if (is_write)
		fill(pieces, count, lba, seed);
	int result = device->ops->transfer(device, &wanted);

	if (!is_poisoned(pieces, count))
		blame("memory beside the buffer has changed");
	for (unsigned i = 0; i < count; i++)
		sum = crc(sum, pieces[i].buffer, pieces[i].sectors * 512);
	printf("= %d %08x\n", result, sum);
}

static void peek(struct drive *drive, uint64_t lba, unsigned count)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum = crc(sum, (uint8_t *)sector_of(drive, lba + i), 512);
	printf("= 0 %08x\n", sum);
}

static void add_drive(struct drive *drive, unsigned number, uint64_t sectors, const char *options)
{
	*drive = (struct drive){ .is_there = true,
				 .number = number,
				 .sectors = sectors,
				 .bad = NO_LBA,
				 .has_lba48 = strchr(options, 'l'),
				 .has_dma = strchr(options, 'd'),
				 .has_forced = strchr(options, 'f'),
				 .most_multiple = strchr(options, 'm') ? 16 : 0,
				 .status = RDY };
}

static void say(int result)
{
	printf("= %d 00000000\n", result);
}

/* A command, and up to five words after it. */
static void run(char **words)
{
	unsigned number = strtoul(words[1], NULL, 0);
	uint64_t lba = strtoull(words[2], NULL, 0);
	struct drive *drive = &channels_of_model[number / 2 % 2].drives[number % 2];
	struct channel *channel = &channels_of_model[number % 2];
	const char *what = words[0];

	limit = now + PATIENCE;
	if (!strcmp(what, "drive")) {
		add_drive(drive, number, lba, words[3]);
	} else if (!strcmp(what, "start")) {
		mode_at_start = words[1];
		ata_initialize();
	} else if (!strcmp(what, "bad")) {
		drive->bad = lba;
		drive->bad_write = *words[3] == 'w';
		drive->bad_error = strtoul(words[4], NULL, 0);
		drive->bad_attempts = strtoul(words[5], NULL, 0);
	} else if (!strcmp(what, "late")) {
		drive->late = lba ? lba * 1000 : 1;
	} else if (!strcmp(what, "refuse")) {
		drive->refuses_multiple = true;
	} else if (!strcmp(what, "gone")) {
		channel->is_gone = lba;
	} else if (!strcmp(what, "lose")) {
		channel->lose = lba;
	} else if (!strcmp(what, "switch")) {
		kernel_switch(strdup(words[1]));
	} else if (!strcmp(what, "stray")) {
		channel->stray = true;
	} else if (!strcmp(what, "fault")) {
		channel->fault = true;
	} else if (!strcmp(what, "peek")) {
		peek(drive, lba, strtoul(words[3], NULL, 0));
	} else if (!strcmp(what, "mode")) {
		say(ata_set_mode(words[1]));
	} else if (!devices[number]) {
		printf("! the driver does not know hd%c\n", 'a' + number);
	} else if (!strcmp(what, "flush")) {
		say(devices[number]->ops->flush(devices[number]));
	} else {
		transfer(devices[number], *what != 'r', *what == 'f', lba, words[3],
			 strtoul(words[4], NULL, 0));
	}
	kernel_check();
}

int main(void)
{
	static char line[8192];
	static char empty[] = "";

	if (!kernel_start())
		return 2;
	limit = PATIENCE;
	while (fgets(line, sizeof(line), stdin)) {
		char *words[6] = { empty, empty, empty, empty, empty, empty };
		unsigned count = 0;

		line[strcspn(line, "\n")] = '\0';
		printf("# %s\n", line);
		for (char *at = line; count < 6 && (words[count] = strsep(&at, " ")); count++)
			;
		for (; count < 6; count++)
			words[count] = empty;
		sleeps = 0;
		question_begins();
		run(words);
		printf("~ %u\n", sleeps);
	}
	return 0;
}
