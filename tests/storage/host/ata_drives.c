/*
 * A model of two ATA channels (ATA/ATAPI-6, sections 7 and 9), as strict as hardware is and as QEMU
 * is not: for 400 ns after a command, a selection or a block, STATUS shows what it showed before;
 * DATA gives junk unless DRQ is set; registers are not taken while a drive is busy. What a driver
 * must not do is blamed; what follows from it happens.
 */
#include "tests/storage/host/ata_drives.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/storage/host/ata_kernel.h"

#define SPARE 4096 /* sectors that have been written */

struct channel channels_of_model[CHANNELS];
uint64_t now = 1000000;

void blame(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	printf("! ");
	vprintf(format, arguments);
	printf("\n");
	va_end(arguments);
}

/* ---- contents ---- */

uint64_t secrets[2];

/* Each bit of the result depends on all of the number (splitmix64). */
static uint64_t mixed(uint64_t number)
{
	number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
	number = (number ^ number >> 27) * 0x94d049bb133111ebu;
	return number ^ number >> 31;
}

uint32_t word_of(uint32_t drive, uint64_t lba, unsigned i)
{
	uint64_t sector = mixed(mixed((uint64_t)drive << 48 ^ lba ^ secrets[0]) + secrets[1]);

	return (uint32_t)mixed(sector + i * 0x9e3779b97f4a7c15u);
}

uint32_t *sector_of(struct drive *drive, uint64_t lba)
{
	static struct {
		struct drive *drive;
		uint64_t lba;
		uint32_t words[128];
	} kept[SPARE];
	static unsigned count, last;

	if (last < count && kept[last].drive == drive && kept[last].lba == lba)
		return kept[last].words;
	for (last = 0; last < count; last++)
		if (kept[last].drive == drive && kept[last].lba == lba)
			return kept[last].words;
	if (count == SPARE)
		exit(3);
	kept[count].drive = drive;
	kept[count].lba = lba;
	for (unsigned i = 0; i < 128; i++)
		kept[count].words[i] = word_of(drive->number, lba, i);
	return kept[count++].words;
}

/* ---- status ---- */

struct drive *selected(struct channel *channel)
{
	return &channel->drives[channel->registers[6] >> 4 & 1];
}

/* The old status is seen for a while yet. */
void set_status(struct drive *drive, uint8_t status, bool is_late)
{
	if (is_late && now >= drive->valid_at) {
		drive->old_status = drive->status;
		drive->valid_at = now + SETTLE;
	}
	drive->status = status;
}

void interrupt(struct channel *channel)
{
	bool was = channel->is_interrupting;

	if (channel->control & 2)
		return;
	channel->is_interrupting = true;
	channel->master_status |= 4;
	if (was) /* the controller takes edges */
		return;
	if (channel->lose > 0)
		channel->lose--;
	else
		channel->is_pending = true;
}

/* ---- a command ---- */

bool is_bad(const struct drive *drive, uint64_t lba)
{
	return lba == drive->bad && lba != NO_LBA && drive->is_write == drive->bad_write;
}

static void end(struct channel *channel, struct drive *drive, uint8_t status)
{
	drive->is_moving = false;
	drive->ready_at = 0;
	set_status(drive, status, false);
	interrupt(channel);
}

/* The sector cannot be read or written. */
void command_fails(struct channel *channel, struct drive *drive)
{
	drive->error = drive->bad_error;
	if (drive->bad_attempts > 0 && --drive->bad_attempts == 0)
		drive->bad = NO_LBA;
	end(channel, drive, RDY | (drive->bad_error ? ERR : DF));
}

/* Ranges of 48 bits of address and 16 of length: they read as zeros. */
static void discard(struct drive *drive, const uint8_t *ranges, uint32_t bytes)
{
	for (uint32_t at = 0; at < bytes; at += 8) {
		uint64_t range;

		memcpy(&range, ranges + at, 8);
		for (uint64_t i = 0; i < range >> 48; i++)
			memset(sector_of(drive, (range & 0xffffffffffff) + i), 0, 512);
	}
}

/* The kernel's data is below its direct map here. */
static void move_entry(const struct drive *drive, uint32_t address, uint8_t *data, uint32_t size)
{
	bool is_own = drive->is_ranges || address - ARENA_AT >= ARENA_BYTES;
	enum memory memory = is_own ? OWN : ARENA;
	uint32_t offset = is_own ? address + KERNEL_AT : address - ARENA_AT;

	if (drive->is_write)
		memory_get(memory, offset, data, size);
	else
		memory_put(memory, offset, data, size);
}

/* An entry of the bus master's table after another, until all sectors are there. */
static bool move_all(struct channel *channel, struct drive *drive)
{
	uint32_t bytes = drive->left * 512, done = 0;
	uint32_t table = channel->master_table;
	static uint8_t data[256 * 512];

	for (unsigned i = 0; i < drive->left && !drive->is_ranges; i++)
		memcpy(data + i * 512, sector_of(drive, drive->lba + i), 512);
	while (done < bytes) {
		uint32_t entry[2];

		if (!memory_has(table, sizeof(entry))) {
			blame("the table goes on where there is no memory");
			return false;
		}
		memory_get(ARENA, table - ARENA_AT, entry, sizeof(entry));
		uint32_t address = entry[0], size = entry[1] & 0xffff;

		size = size ? size : 65536;
		if (address % 2 || size % 2)
			blame("an entry of the table is at %#x, %u bytes: not even", address, size);
		if ((address & 0xffff) + size > 65536) {
			blame("an entry of the table crosses a multiple of 64 KiB");
			size = 65536 - (address & 0xffff);
		}
		if (!memory_has(address, size) && !drive->is_ranges) {
			blame("an entry of the table is not in memory");
			return false;
		}
		if (size > bytes - done)
			size = bytes - done;
		move_entry(drive, address, data + done, size);
		done += size;
		table += 8;
		if ((entry[1] & 0x80000000u) && done < bytes)
			return false; /* the drive waits for what does not come */
		if (!(entry[1] & 0x80000000u) && done == bytes)
			blame("the last entry of the table is not marked");
	}
	if (drive->is_ranges)
		discard(drive, data, bytes);
	else if (drive->is_write)
		for (unsigned i = 0; i < drive->left; i++)
			memcpy(sector_of(drive, drive->lba + i), data + i * 512, 512);
	return true;
}

static void move_by_master(struct channel *channel, struct drive *drive)
{
	bool to_memory = channel->master_command & 8;

	if (!(channel->master_command & 1))
		return;
	if (!drive->is_halfway) {
		drive->is_halfway = true;
		set_status(drive, RDY | DRQ, false);
		drive->ready_at = now + WORKING;
		return;
	}
	drive->ready_at = 0;
	if (drive->stalls) {
		drive->stalls = false;
		return;
	}
	for (unsigned i = 0; i < drive->left; i++)
		if (is_bad(drive, drive->lba + i)) {
			command_fails(channel, drive);
			return;
		}
	if (to_memory == drive->is_write)
		blame("the bus master moves in the other direction");
	else if (channel->fault) {
		channel->fault = false;
		channel->master_status |= 2;
		end(channel, drive, RDY);
		return;
	} else if (move_all(channel, drive)) {
		end(channel, drive, RDY);
		return;
	}
	set_status(drive, RDY | DRQ, false);
}

/* It is no longer busy. */
static void proceed(struct channel *channel, struct drive *drive)
{
	if (drive->is_dma) {
		move_by_master(channel, drive);
		return;
	}
	drive->ready_at = 0;
	if (drive->left == 0) {
		end(channel, drive, RDY);
		return;
	}
	drive->block = drive->left < drive->block ? drive->left : drive->block;
	if (!drive->is_write)
		for (unsigned i = 0; i < drive->block; i++)
			if (is_bad(drive, drive->lba + i)) {
				command_fails(channel, drive);
				return;
			}
	drive->words = 0;
	set_status(drive, RDY | DRQ, false);
	if (!drive->is_write || drive->lba != drive->first)
		interrupt(channel);
}

static bool is_working(const struct channel *channel)
{
	return channel->drives[0].is_moving || channel->drives[1].is_moving;
}

static void step_strays(struct channel *channel)
{
	if (!channel->strays || channel->stray_at > now)
		return;
	channel->stray_at = now + channel->strays;
	channel->is_pending |= is_working(channel);
}

void drives_step(void)
{
	for (unsigned i = 0; i < CHANNELS; i++)
		step_strays(&channels_of_model[i]);
	for (unsigned i = 0; i < 2 * CHANNELS; i++) {
		struct channel *channel = &channels_of_model[i / 2];
		struct drive *drive = &channel->drives[i % 2];

		if (drive->ready_at && drive->ready_at <= now && drive->is_moving)
			proceed(channel, drive);
	}
}

uint64_t drives_next(void)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < CHANNELS; i++) {
		struct channel *channel = &channels_of_model[i];

		if (channel->strays && is_working(channel) && channel->stray_at < next)
			next = channel->stray_at;
	}
	for (unsigned i = 0; i < 2 * CHANNELS; i++) {
		struct drive *drive = &channels_of_model[i / 2].drives[i % 2];

		if (drive->is_moving && drive->ready_at > now && drive->ready_at < next)
			next = drive->ready_at;
	}
	return next;
}

void drive_works(struct drive *drive)
{
	drive->is_moving = true;
	set_status(drive, BSY, true);
	drive->is_halfway = false;
	drive->ready_at = now + (drive->late ? drive->late : WORKING);
	drive->late = 0;
}

static void be_at(struct drive *drive, bool is_write, unsigned sectors, uint8_t status)
{
	drive->is_moving = true;
	drive->is_write = is_write;
	drive->is_dma = drive->is_ranges = false;
	drive->lba = drive->first = 0;
	drive->left = drive->block = sectors;
	drive->words = 0;
	drive->ready_at = drive->valid_at = 0;
	drive->status = status;
}

void drive_is_busy(struct drive *drive, uint64_t ns)
{
	be_at(drive, true, 0, BSY);
	drive->ready_at = now + ns;
}

void drive_has_data(struct drive *drive)
{
	be_at(drive, false, 1, RDY | DRQ);
}

/* Word i of 256 that tell what the drive can do. */
static void make_identity(struct drive *drive)
{
	uint16_t *words = drive->identity;
	uint64_t small = drive->sectors < 0xfffffff ? drive->sectors : 0xfffffff;

	memset(words, 0, sizeof(drive->identity));
	for (unsigned i = 27; i < 47; i++)
		words[i] = 'M' << 8 | 'D';
	words[47] = drive->most_multiple;
	words[49] = 1 << 9 | drive->has_dma << 8;
	words[60] = small;
	words[61] = small >> 16;
	words[83] = 1 << 12 | drive->has_lba48 << 10;
	words[84] = drive->has_forced << 6;
	words[169] = drive->has_trim;
	for (unsigned i = 0; i <= 3; i++)
		words[100 + i] = drive->has_lba48 ? drive->sectors >> 16 * i : 0;
}

static const struct {
	uint8_t code;
	bool is_write, is_wide, has_blocks, is_dma, is_forced, is_ranges;
} commands[] = {
	{ 0x06, .is_write = true, .is_dma = true, .is_wide = true, .is_ranges = true },
	{ 0x20, .is_write = false },
	{ 0x24, .is_wide = true },
	{ 0xc4, .has_blocks = true },
	{ 0x29, .has_blocks = true, .is_wide = true },
	{ 0xc8, .is_dma = true },
	{ 0x25, .is_dma = true, .is_wide = true },
	{ 0x30, .is_write = true },
	{ 0x34, .is_write = true, .is_wide = true },
	{ 0xc5, .is_write = true, .has_blocks = true },
	{ 0x39, .is_write = true, .has_blocks = true, .is_wide = true },
	{ 0xca, .is_write = true, .is_dma = true },
	{ 0x35, .is_write = true, .is_dma = true, .is_wide = true },
	{ 0xce, .is_write = true, .has_blocks = true, .is_wide = true, .is_forced = true },
	{ 0x3d, .is_write = true, .is_dma = true, .is_wide = true, .is_forced = true },
};

/* The address and the count, as the registers have them. */
static void take_range(const struct channel *channel, struct drive *drive, bool is_wide)
{
	const uint8_t *last = channel->registers, *first = channel->before;

	drive->lba = last[3] | last[4] << 8 | (uint64_t)last[5] << 16;
	if (is_wide) {
		drive->lba |=
		    (uint64_t)first[3] << 24 | (uint64_t)first[4] << 32 | (uint64_t)first[5] << 40;
		drive->left = first[2] << 8 | last[2];
		drive->left = drive->left ? drive->left : 65536;
	} else {
		drive->lba |= (uint64_t)(last[6] & 15) << 24;
		drive->left = last[2] ? last[2] : 256;
	}
	drive->first = drive->lba;
}

static void abort_command(struct channel *channel, struct drive *drive)
{
	drive->error = 4;
	drive->is_moving = false;
	drive->ready_at = 0;
	set_status(drive, RDY | ERR, true);
	interrupt(channel);
}

/* What the script wants with this command. */
static void happen(struct channel *channel)
{
	if (channel->stray)
		channel->is_pending = true;
	channel->stray = false;
	channel->is_gone |= channel->unplugs;
	channel->unplugs = false;
}

void command_starts(struct channel *channel, struct drive *drive, uint8_t code)
{
	unsigned place = channel - channels_of_model;

	channel->is_asked = true;
	happen(channel);
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (commands[i].code != code)
			continue;
		take_range(channel, drive, commands[i].is_wide);
		drive->is_write = commands[i].is_write;
		drive->is_dma = commands[i].is_dma;
		drive->is_ranges = commands[i].is_ranges;
		if (commands[i].is_wide && (channel->registers[6] & 15))
			blame("DEVICE has bits of an address, and the command is one of LBA48");
		if (commands[i].is_ranges && (!drive->has_trim || channel->registers[1] != 1))
			blame("DATA SET MANAGEMENT, without TRIM in FEATURES");
		drive->block = commands[i].has_blocks ? drive->multiple : 1;
		printf("@ hd%c %02x %llu %u\n", "abcd"[2 * place + (drive - channel->drives)], code,
		       (unsigned long long)drive->lba, drive->left);
		if (!(channel->registers[6] & 0x40) || drive->block == 0 || drive->left > 256 ||
		    drive->lba + drive->left > drive->sectors) {
			abort_command(channel, drive);
			return;
		}
		drive->words = 0;
		drive->late = drive->stuck ? drive->stuck : drive->late;
		drive_works(drive);
		return;
	}
	drive->is_dma = false;
	if (code == 0xec) {
		make_identity(drive);
		drive->lba = drive->first = NO_LBA; /* what it gives is drive->identity */
		drive->left = drive->block = 1;
		drive->is_write = false;
		drive_works(drive);
	} else if (code == 0xc6 && drive->most_multiple && !drive->refuses_multiple &&
		   channel->registers[2] <= drive->most_multiple) {
		drive->multiple = channel->registers[2];
		drive->left = 0;
		drive_works(drive);
	} else if (code == 0xe7 || code == 0xea) {
		printf("@ hd%c %02x 0 0\n", "abcd"[2 * place + (drive - channel->drives)], code);
		drive->left = 0;
		drive_works(drive);
	} else {
		abort_command(channel, drive);
	}
}
