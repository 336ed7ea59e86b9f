/*
 * The machine around the ATA driver: the drives of ata_drives.c, and ata_kernel.c for the rest. The
 * driver is another process (ata_inside.c), at the standard input and output. The argument is a
 * script, a command a line; what is printed on the standard error after "#" is the answer:
 *
 *	secret A B		what all contents are made of
 *	drive N SECTORS OPTIONS	a drive 0 to 3; l(BA48) d(MA) f(orced) t(rim),
 *				m: blocks
 *	start MODE		ata_initialize
 *	read N LBA PIECES	pieces: sectors, or sectors@offset,sectors@offset; 3s: 3
 *				sectors that DMA does not reach; 3b: that it reaches in part
 *	write N LBA PIECES SEED
 *	forced N LBA PIECES SEED
 *	flush N
 *	peek N LBA COUNT	the drive's own contents
 *	made N LBA COUNT	what it had there at first, or what the seed N writes there
 *	bad N LBA KIND E TIMES	it fails; KIND: r or w; E: the ERROR register, 0: DF
 *	late N MICROSECONDS	the next command takes so long
 *	stuck N MICROSECONDS	each command for sectors takes so long; 0: no longer
 *	busy N MICROSECONDS	it works on something for so long
 *	left N			it has a sector that nobody has fetched
 *	stall N			its next DMA comes to no end
 *	discard N LBA COUNT
 *	gone CHANNEL YES	its bus floats
 *	away N YES		it is unplugged; its neighbour stays
 *	lose CHANNEL COUNT	this many interrupts get lost
 *	fault CHANNEL		its next DMA fails
 *	stray CHANNEL		an interrupt of nobody comes with its next command
 *	switch NAME		another task changes the mode during the next command
 *	tight			its answer comes just before interrupts are disabled
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

#include "tests/storage/host/ata_drives.h"
#include "tests/storage/host/ata_kernel.h"

#define FIRST	 4096 /* bytes of the arena before the pieces */
#define SECTOR	 512u
#define MOST	 256 /* sectors of a transfer, and pieces */
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
static unsigned parse(char *text, struct talk_piece *pieces)
{
	unsigned count = 0;
	uint32_t place = FIRST;

	for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		char *offset = strchr(word, '@'), *end;

		place += offset ? strtoul(offset + 1, NULL, 0) : 0;
		uint32_t here = strtoul(word, &end, 0);
		struct talk_piece piece = { ARENA, place, here };

		if (*end == 's')
			piece = (struct talk_piece){ ELSEWHERE, 0, here };
		else if (*end == 'b')
			piece = (struct talk_piece){ OWN, BORDER_AT, here };
		else
			place += here * SECTOR;
		pieces[count++] = piece;
	}
	return count;
}

static bool is_poisoned(const uint8_t *arena, const struct talk_piece *pieces, unsigned count)
{
	uint32_t at = 0;

	for (unsigned i = 0; i <= count; i++) {
		uint32_t end = i < count ? pieces[i].offset : ARENA_FOR_SECTORS;

		if (i < count && pieces[i].memory != ARENA)
			continue;
		for (; at < end; at++)
			if (arena[at] != POISON)
				return false;
		if (i < count)
			at += pieces[i].sectors * SECTOR;
	}
	return true;
}

/* The sectors of a range, as the seed makes them. Returns how many bytes. */
static uint32_t make(uint8_t *bytes, uint32_t seed, uint64_t lba, unsigned sectors)
{
	for (unsigned word = 0; word < sectors * 128; word++) {
		uint32_t value = word_of(seed, lba + word / 128, word % 128);

		memcpy(bytes + word * 4, &value, 4);
	}
	return sectors * SECTOR;
}

static void fill(const struct talk_piece *pieces, unsigned count, uint64_t lba, uint32_t seed)
{
	static uint8_t bytes[MOST * SECTOR];

	for (unsigned i = 0; i < count; lba += pieces[i++].sectors)
		memory_put(pieces[i].memory, pieces[i].offset, bytes,
			   make(bytes, seed, lba, pieces[i].sectors));
}

static void transfer(unsigned number, bool is_write, bool is_forced, uint64_t lba, char *text,
		     uint32_t seed)
{
	static struct talk_piece pieces[MOST];
	static uint8_t arena[ARENA_FOR_SECTORS], elsewhere[ELSEWHERE_SECTORS * SECTOR];
	unsigned count = parse(text, pieces);
	uint32_t sum = 0;

	memset(arena, POISON, sizeof(arena));
	memory_put(ARENA, 0, arena, sizeof(arena));
	if (is_write)
		fill(pieces, count, lba, seed);
	int64_t result = call(CALL_TRANSFER, number, is_write | is_forced << 1, lba, pieces,
			      count * sizeof(pieces[0]));

	memory_get(ARENA, 0, arena, sizeof(arena));
	if (!is_poisoned(arena, pieces, count))
		blame("memory beside the buffer has changed");
	for (unsigned i = 0; i < count; i++) {
		uint32_t bytes = pieces[i].sectors * SECTOR;

		if (pieces[i].memory != ARENA)
			memory_get(pieces[i].memory, pieces[i].offset, elsewhere, bytes);
		sum = crc(sum, pieces[i].memory == ARENA ? arena + pieces[i].offset : elsewhere,
			  bytes);
	}
	printf("= %d %08x\n", (int)result, sum);
}

static void show_made(uint32_t seed, uint64_t lba, unsigned count)
{
	static uint8_t bytes[MOST * SECTOR];

	printf("= 0 %08x\n", crc(0, bytes, make(bytes, seed, lba, count)));
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
				 .has_trim = strchr(options, 't'),
				 .most_multiple = strchr(options, 'm') ? 16 : 0,
				 .status = RDY };
}

static void say(int64_t result)
{
	printf("= %d 00000000\n", (int)result);
}

/* What a drive or a channel is to do. Returns false for another command. */
static bool prepare(const char *what, char **words, unsigned number, uint64_t lba)
{
	struct drive *drive = &channels_of_model[number / 2 % 2].drives[number % 2];
	struct channel *channel = &channels_of_model[number % 2];

	if (!strcmp(what, "drive")) {
		add_drive(drive, number, lba, words[3]);
	} else if (!strcmp(what, "bad")) {
		drive->bad = lba;
		drive->bad_write = *words[3] == 'w';
		drive->bad_error = strtoul(words[4], NULL, 0);
		drive->bad_attempts = strtoul(words[5], NULL, 0);
	} else if (!strcmp(what, "late")) {
		drive->late = lba ? lba * 1000 : 1;
	} else if (!strcmp(what, "tail")) {
		drive->tail = lba * 1000;
	} else if (!strcmp(what, "stuck")) {
		drive->stuck = lba * 1000;
	} else if (!strcmp(what, "busy")) {
		drive_is_busy(drive, lba * 1000);
	} else if (!strcmp(what, "left")) {
		drive_has_data(drive);
	} else if (!strcmp(what, "stall")) {
		drive->stalls = true;
	} else if (!strcmp(what, "refuse")) {
		drive->refuses_multiple = true;
	} else if (!strcmp(what, "gone")) {
		channel->is_gone = lba;
	} else if (!strcmp(what, "unplug")) {
		channel->unplugs = true;
	} else if (!strcmp(what, "away")) {
		drive->is_there = !lba;
	} else if (!strcmp(what, "lose")) {
		channel->lose = lba;
	} else if (!strcmp(what, "stray")) {
		channel->stray = true;
	} else if (!strcmp(what, "strays")) {
		channel->strays = lba * 1000;
	} else if (!strcmp(what, "fault")) {
		channel->fault = true;
	} else {
		return false;
	}
	return true;
}

static int64_t set_mode(uint32_t what, const char *mode, bool is_alone)
{
	is_polled = false;
	int64_t result = call(what, is_alone, 0, 0, mode, strlen(mode) + 1);

	is_polled = strstr(mode, "polled");
	has_started = true;
	return result;
}

/* A command, and up to five words after it. */
static void run(char **words)
{
	unsigned number = strtoul(words[1], NULL, 0);
	uint64_t lba = strtoull(words[2], NULL, 0);
	const char *what = words[0];

	limit = now + PATIENCE;
	if (!strcmp(what, "secret")) {
		secrets[0] = strtoull(words[1], NULL, 0);
		secrets[1] = lba;
	} else if (!strcmp(what, "start")) {
		set_mode(CALL_START, words[1], *words[2]);
	} else if (!strcmp(what, "mode")) {
		say(set_mode(CALL_MODE, words[1], false));
	} else if (!strcmp(what, "tight")) {
		waits_at_cli = true;
	} else if (!strcmp(what, "edge")) {
		waits_at_status = true;
	} else if (!strcmp(what, "wire")) {
		watches_wire = true;
	} else if (!strcmp(what, "switch")) {
		kernel_switch(strdup(words[1]));
	} else if (!strcmp(what, "peek")) {
		peek(&channels_of_model[number / 2 % 2].drives[number % 2], lba,
		     strtoul(words[3], NULL, 0));
	} else if (!strcmp(what, "made")) {
		show_made(number, lba, strtoul(words[3], NULL, 0));
	} else if (!prepare(what, words, number, lba)) {
		if (!is_there[number % 4])
			printf("! the driver does not know hd%c\n", 'a' + number);
		else if (!strcmp(what, "discard"))
			say(call(CALL_DISCARD, number, strtoul(words[3], NULL, 0), lba, NULL, 0));
		else if (!strcmp(what, "flush"))
			say(call(CALL_FLUSH, number, 0, 0, NULL, 0));
		else
			transfer(number, *what != 'r', *what == 'f', lba, words[3],
				 strtoul(words[4], NULL, 0));
	}
	kernel_check();
}

int main(int count, char **arguments)
{
	static char empty[] = "";
	char *script = count > 1 ? arguments[1] : empty;

	if (!kernel_start())
		return 2;
	limit = PATIENCE;
	for (char *line; (line = strsep(&script, "\n")) && *line;) {
		char *words[6] = { empty, empty, empty, empty, empty, empty };

		printf("#\n");
		for (unsigned i = 0; i < 6 && line; i++)
			words[i] = strsep(&line, " ");
		sleeps = 0;
		call(CALL_QUESTION, 0, 0, 0, NULL, 0);
		run(words);
		printf("~ %u\n", sleeps);
	}
	return 0;
}
