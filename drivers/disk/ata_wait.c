/*
 * Waiting for a drive: polled, or by its interrupt.
 *
 * After a command, and after each block of data but the last of a read, the drive is busy; then it
 * has data, wants data, or has finished, and raises its interrupt:
 *
 *	the task				the handler
 *	sends the command
 *	is_answered? no: sleeps			(other tasks run)
 *						reads STATUS: the drive withdraws its interrupt
 *						is_answered = true, wakes the task
 *	reads STATUS: no longer busy
 *
 * The handler may run before the task sleeps, so the task looks with interrupts disabled. Whatever
 * sent the interrupt, the task trusts only the drive's status. If an interrupt is lost, the task
 * finds the answer when its time is over, and says so.
 *
 * The sleep is not ended by signals: the controller may be writing to memory that the caller would
 * free. The caller has the channel; with interrupts it is a task that may sleep.
 */
#include "drivers/clock/pic.h"
#include "drivers/disk/ata_drive.h"
#include "kernel/cpu/io.h"
#include "kernel/report/printk.h"
#include "kernel/task/time.h"

/* A drive that takes this long takes longer: a channel with interrupts lets other tasks run. */
#define PATIENCE_NS 1000000ull

uint8_t ata_poll(const struct ata_drive *drive, uint8_t busy, uint64_t timeout_ns)
{
	uint64_t start = time_ns(), waited = 0;
	uint8_t status;

	while (((status = in8(drive->channel->command_block + ATA_STATUS)) & busy) &&
	       status != ATA_FLOATING && waited < timeout_ns) {
		if (drive->channel->has_interrupts && waited > PATIENCE_NS)
			msleep(1);
		waited = time_ns() - start;
	}
	return status;
}

/* ---- interrupts ---- */

static struct ata_channel *channel_of[2]; /* of IRQ 14 and 15 */

/* EXERCISE S2 (interrupts and DMA, part 2): on_interrupt is called, with interrupts disabled, for
   each interrupt of a channel, as the opening comment draws it. An interrupt that nobody waits for
   is forgotten when the next command is sent.

   Pitfall: a drive goes on raising its interrupt until its STATUS is read, and the interrupt
   controller accepts a new one only after that. */
/* SOLUTION S2 { */
static void on_interrupt(struct ata_channel *channel)
{
	in8(channel->command_block + ATA_STATUS);
	channel->is_answered = true;
	wait_wake(&channel->waiting);
}
/* } SOLUTION S2 */

static void on_irq_14(void)
{
	on_interrupt(channel_of[0]);
}

static void on_irq_15(void)
{
	on_interrupt(channel_of[1]);
}

void ata_interrupts_initialize(struct ata_channel *channels)
{
	for (unsigned i = 0; i < 2; i++)
		channel_of[i] = &channels[i];
	irq_register(14, on_irq_14);
	irq_register(15, on_irq_15);
}

/* From the tick. */
static void on_late(struct timer *timer)
{
	struct ata_channel *channel = list_entry(timer, struct ata_channel, alarm);

	channel->is_late = true;
	wait_wake(&channel->waiting);
}

/* EXERCISE S2 (interrupts and DMA, part 3): sleep_while returns the drive's STATUS as soon as an
   interrupt has come and none of the bits `busy` is set, or when it floats; or after timeout_ns.
   The alarm is for that: on_late. wait_sleep_blocked sleeps, with interrupts disabled by its
   caller. If the time was over, and yet the drive has an answer, it says that an interrupt was
   lost.

   Pitfalls: the interrupt may have come before the task sleeps, or come between its check and its
   sleep. An interrupt need not be this command's end: only STATUS tells. The alarm must not go off
   later, in somebody else's wait. */
/* SOLUTION S2 { */
/* Sleeps until the next interrupt, or until the alarm. */
static void sleep_until_answered(struct ata_channel *channel)
{
	bool enabled = interrupts_disable();

	while (!channel->is_answered && !channel->is_late)
		wait_sleep_blocked(&channel->waiting);
	channel->is_answered = false;
	interrupts_restore(enabled);
}

static uint8_t sleep_while(const struct ata_drive *drive, uint8_t busy, uint64_t timeout_ns)
{
	struct ata_channel *channel = drive->channel;
	uint8_t status;

	channel->is_late = false;
	timer_start(&channel->alarm, time_ns() + timeout_ns, on_late);
	do {
		sleep_until_answered(channel);
		status = in8(channel->command_block + ATA_STATUS);
	} while ((status & busy) && status != ATA_FLOATING && !channel->is_late);
	timer_cancel(&channel->alarm);
	if (channel->is_late && !(status & busy))
		printk("%s: an interrupt was lost\n", drive->block.name);
	return status;
}
/* } SOLUTION S2 */

uint8_t ata_answer(const struct ata_drive *drive, uint8_t busy, uint64_t timeout_ns)
{
	return drive->channel->has_interrupts ? sleep_while(drive, busy, timeout_ns)
					      : ata_poll(drive, busy, timeout_ns);
}
