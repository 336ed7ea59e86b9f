/*
 * The ports of the model's channels: which register an access is for, and what it does there. A
 * word of DATA moves at any time; the drive answers it only while it has DRQ set.
 */
#include "tests/storage/host/ata_drives.h"

#include <stddef.h>

#define MASTER	     0xc000
#define JUNK	     0xa5c3
#define RESET_TIME   1900000 /* ns: less than the two milliseconds that a driver waits */
#define FEW_POLLS    8
#define MOST_AT_ONCE 10000000 /* ns */

/* ---- data ---- */

static uint16_t *word_at(struct drive *drive)
{
	uint64_t lba = drive->lba + drive->words / 256;

	if (drive->first == NO_LBA)
		return &drive->identity[drive->words];
	return (uint16_t *)sector_of(drive, lba) + drive->words % 256;
}

static uint16_t data(struct channel *channel, bool is_write, uint16_t value)
{
	struct drive *drive = selected(channel);

	if (!drive->is_moving || !(drive->status & DRQ) || drive->is_write != is_write ||
	    drive->is_dma) {
		blame("DATA is %s while the drive has DRQ clear", is_write ? "written" : "read");
		return JUNK;
	}
	uint16_t *word = word_at(drive);

	if (is_write)
		*word = value;
	value = *word;
	if (++drive->words < drive->block * 256)
		return value;
	if (is_write)
		for (unsigned i = 0; i < drive->block; i++)
			if (is_bad(drive, drive->lba + i)) {
				set_status(drive, BSY, true);
				command_fails(channel, drive);
				return value;
			}
	drive->left -= drive->block;
	if (drive->first != NO_LBA)
		drive->lba += drive->block;
	drive->words = 0;
	if (drive->left == 0 && !is_write) { /* the last word was fetched: no interrupt */
		drive->is_moving = false;
		set_status(drive, RDY, true);
	} else {
		if (drive->left == 0) {
			drive->late = drive->tail;
			drive->tail = 0;
		}
		drive_works(drive);
	}
	return value;
}

/* ---- registers ---- */

static uint8_t status(struct channel *channel)
{
	struct drive *drive = selected(channel);

	if (!drive->is_there)
		return channel->drives[0].is_there || channel->drives[1].is_there ? 0 : 0xff;
	if (now < drive->reset_until) /* at first it has not yet noticed */
		return drive->reset_until - now > RESET_TIME / 2 ? RDY : BSY;
	return now < drive->valid_at ? drive->old_status : drive->status;
}

static void reset(struct channel *channel)
{
	channel->resets++;
	for (unsigned i = 0; i < 2; i++) {
		struct drive *drive = &channel->drives[i];

		drive->is_moving = false;
		drive->ready_at = drive->late = 0;
		drive->multiple = 0;
		drive->valid_at = 0;
		drive->error = 1;
		drive->status = RDY;
		drive->reset_until = now + RESET_TIME;
	}
	channel->is_interrupting = channel->is_pending = false;
	channel->registers[6] = 0;
}

static void write_control(struct channel *channel, uint8_t value)
{
	static uint64_t since[CHANNELS];
	uint64_t *start = &since[channel - channels_of_model];

	if ((value & 4) && !(channel->control & 4))
		*start = now;
	if (!(value & 4) && (channel->control & 4)) {
		if (now - *start < 5000)
			blame("SOFT_RESET was set for %llu ns only",
			      (unsigned long long)(now - *start));
		reset(channel);
	}
	channel->control = value;
}

static void write_register(struct channel *channel, unsigned number, uint8_t value)
{
	struct drive *drive = selected(channel);

	if (drive->is_there && (drive->status & (BSY | DRQ)) && drive->is_moving) {
		blame("register %u is written while the drive has %s set", number,
		      drive->status & BSY ? "BSY" : "DRQ");
		return;
	}
	if (number == 7) {
		if (drive->is_there && !channel->is_gone) {
			if (now < drive->reset_until)
				blame("COMMAND is written while the drive is being reset");
			if (now < drive->valid_at)
				blame("COMMAND is written before 400 ns are over");
			channel->is_interrupting = false;
			command_starts(channel, drive, value);
		}
		return;
	}
	channel->before[number] = channel->registers[number];
	channel->registers[number] = value;
	if (number == 6 && selected(channel) != drive) {
		struct drive *other = selected(channel);

		other->old_status = drive->is_there ? drive->status : 0;
		other->valid_at = now + SETTLE;
	}
}

static struct channel *channel_at(uint16_t port, unsigned *number)
{
	for (unsigned i = 0; i < CHANNELS; i++) {
		uint16_t block = i ? 0x170 : 0x1f0;

		*number = port - block;
		if (*number < 8)
			return &channels_of_model[i];
		*number = 8;
		if (port == block + 0x206)
			return &channels_of_model[i];
	}
	return NULL;
}

static struct channel *master_at(uint16_t port, unsigned *number)
{
	if (port < MASTER || port >= MASTER + 16)
		return NULL;
	*number = port % 8;
	return &channels_of_model[port / 8 % 2];
}

/* Who polls a drive that is busy, or that keeps its data, need not do so a million times: each time
 * takes longer. Moving data is no poll. */
static void let_time_pass(bool is_busy)
{
	static unsigned polls;
	static uint64_t since;
	uint64_t more = (now - since) / 2;

	if (!is_busy || polls == 0)
		since = now;
	polls = is_busy ? polls + 1 : 0;
	if (polls > FEW_POLLS)
		now += more < MOST_AT_ONCE ? more : MOST_AT_ONCE;
}

uint32_t port_in(uint16_t port, unsigned size)
{
	unsigned number;
	struct channel *channel = channel_at(port, &number);

	now += number == 0 ? PORT_TIME / 4 : PORT_TIME;
	drives_step();
	if (channel && number == 0)
		let_time_pass(false);
	if (channel && channel->is_gone)
		return 0xffffffff;
	if (channel && number == 0)
		return size == 2 ? data(channel, false, 0) : JUNK;
	if (channel && number == 1)
		return selected(channel)->error;
	if (channel && number < 7)
		return channel->registers[number];
	if (channel) {
		uint8_t value = status(channel);

		if (number == 7 && !is_in_handler && selected(channel)->is_there &&
		    now < selected(channel)->valid_at)
			blame(
			    "STATUS is read before 400 ns are over: it may take an interrupt away");
		if (number == 7)
			channel->is_interrupting = false;
		if (number == 7)
			let_time_pass(value != 0xff && (value & (BSY | DRQ)));
		return value;
	}
	if ((channel = master_at(port, &number)))
		return number == 0 ? channel->master_command : channel->master_status;
	return 0xffffffff;
}

static void write_master(struct channel *channel, unsigned number, uint32_t value)
{
	if (number == 4) {
		channel->master_table = value;
	} else if (number == 2) {
		channel->master_status &= ~(value & 6);
	} else if (number == 0) {
		if ((value & 1) && (channel->master_command & 1))
			blame("the bus master is started, and was not stopped before");
		if ((value & 1) && (channel->master_status & 6))
			blame("the bus master is started with old bits in its status");
		if ((value & 1) && !channel->is_asked)
			blame("the bus master is started, and the drive has no command yet");
		channel->is_asked &= value & 1;
		channel->master_command = value;
	}
}

void port_out(uint16_t port, unsigned size, uint32_t value)
{
	unsigned number;
	struct channel *channel = channel_at(port, &number);

	now += number == 0 ? PORT_TIME / 4 : PORT_TIME;
	drives_step();
	if (channel && number == 0)
		let_time_pass(false);
	if (channel && channel->is_gone)
		return;
	if (channel && number == 0)
		data(channel, true, value);
	else if (channel && number == 8)
		write_control(channel, value);
	else if (channel)
		write_register(channel, number, value);
	else if ((channel = master_at(port, &number)))
		write_master(channel, number, value);
}
