/*
 * Block devices: the one way to every disk, on which each request is checked, counted and traced.
 *
 *	block_read(hdb, lba 1000, 600 sectors)
 *		request 1000, 256	-> driver, statistics, trace record
 *		request 1256, 256	-> ...
 *		request 1512, 88	-> ...
 *
 * A driver sees only ranges that are wholly on its device, and at most 256 sectors, which is what
 * one ATA command can say. So no driver checks again. The purpose comes from the caller: only it
 * knows whether a block is data or says where data is.
 *
 * May wait for the drive, which polls: not for interrupt handlers.
 */
#include "drivers/disk/block.h"

#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"
#include "kernel/lib/string.h"
#include "kernel/task/time.h"
#include "drivers/disk/trace.h"

#define SECTORS_PER_REQUEST 256u /* the most that one ATA command reads */

static struct block_device *first; /* in the order of registration */

/* At boot. Appends, so that devices are listed in the order in which they were found. */
void block_register(struct block_device *device)
{
	struct block_device **link = &first;

	while (*link)
		link = &(*link)->next;
	*link = device;
}

/* For the command that lists all drives. */
struct block_device *block_first(void)
{
	return first;
}

/* By a linear search: there are four drives. */
struct block_device *block_find(const char *name)
{
	struct block_device *device = first;

	while (device && strcmp(device->name, name) != 0)
		device = device->next;
	return device;
}

/* Errors count once and add no sectors: a transfer that failed has delivered nothing reliable. */
static void account(struct block_device *device, const struct trace_record *record)
{
	struct block_stats *stats = &device->stats;

	stats->busy_ns += record->duration_ns;
	if (record->result < 0) {
		stats->errors++;
	} else {
		stats->requests[record->purpose]++;
		stats->sectors[record->purpose] += record->sectors;
	}
	trace_add(record);
}

/* One request of at most SECTORS_PER_REQUEST sectors. */
static int request(struct block_device *device, uint64_t lba, unsigned count, void *buffer,
		   enum block_purpose purpose)
{
	uint64_t start = time_ns();
	int result = device->ops->read(device, lba, count, buffer);
	struct trace_record record = {
		.start_ns = start,
		.lba = lba,
		.duration_ns = time_ns() - start,
		.sectors = count,
		.result = result,
		.drive = device->name[strlen(device->name) - 1],
		.operation = 'R',
		.purpose = purpose,
	};

	account(device, &record);
	return result;
}

/* The comparison subtracts: lba + count could wrap. After an error the rest is not tried. */
int block_read(struct block_device *device, uint64_t lba, unsigned count, void *buffer,
	       enum block_purpose purpose)
{
	if (count == 0 || lba >= device->sectors || count > device->sectors - lba) {
		printk("%s: read of %u sectors at LBA %llu: the device has %llu sectors\n",
		       device->name, count, lba, device->sectors);
		return -EINVAL;
	}
	/* Each part is accounted for by itself: the trace shows what the drive was asked. */
	while (count > 0) {
		unsigned now = count < SECTORS_PER_REQUEST ? count : SECTORS_PER_REQUEST;
		int result = request(device, lba, now, buffer, purpose);

		if (result < 0)
			return result;
		lba += now;
		count -= now;
		buffer = (uint8_t *)buffer + now * SECTOR_SIZE;
	}
	return 0;
}
