/*
 * The four modes of the drives, and the change from one to another while requests are under way.
 *
 * A channel keeps what its mode means in two bits, has_dma and has_interrupts. A task that moves
 * sectors looks at them several times in one command, and the drives are told as well (nIEN in the
 * device control register), so all of it belongs to one request:
 *
 *	a task, with the channel		another task
 *	has_interrupts? sends, sleeps
 *						sets polled mode: the drives raise no interrupt
 *	...sleeps until its time is over
 */
#include "drivers/disk/ata_mode.h"

#include "drivers/disk/ata_drive.h"
#include "drivers/qemu/settings.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"

static const struct {
	const char *name;
	bool has_dma, has_interrupts;
} modes[] = {
	{ "dma-interrupt", true, true },
	{ "dma-polled", true, false },
	{ "pio-interrupt", false, true },
	{ "pio-polled", false, false },
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

static unsigned mode = MODES - 1;
static struct ata_channel *all;

const char *ata_mode(void)
{
	return modes[mode].name;
}

/* EXERCISE S2 (interrupts and DMA, part 1): use sets a channel's has_dma and has_interrupts to what
   `mode` says, and tells the drives (ata_tell_interrupts). Other tasks may have requests at this
   channel: see the drawing above. It may sleep. */
/* SOLUTION S2 { */
static void use(struct ata_channel *channel)
{
	mutex_lock(&channel->mutex);
	channel->has_dma = modes[mode].has_dma;
	channel->has_interrupts = modes[mode].has_interrupts;
	ata_tell_interrupts(channel);
	mutex_unlock(&channel->mutex);
}
/* } SOLUTION S2 */

int ata_set_mode(const char *name)
{
	unsigned wanted = 0;

	while (wanted < MODES && strcmp(modes[wanted].name, name) != 0)
		wanted++;
	if (wanted == MODES)
		return -EINVAL;
	if (wanted == mode)
		return 0; /* channels begin polled, by PIO */
	mode = wanted;
	for (unsigned i = 0; i < ATA_CHANNELS; i++)
		use(&all[i]);
	return 0;
}

void ata_modes_initialize(struct ata_channel *channels)
{
	char name[16];

	all = channels;
	if (setting_read("disk", name, sizeof(name)) < 0 || ata_set_mode(name) < 0)
		ata_set_mode(modes[0].name);
}
