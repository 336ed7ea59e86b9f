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
 * A partition is a device whose requests go to its drive, moved by its first sector. They count for
 * both, as Linux counts them; the trace has them once, as the drive saw them.
 *
 * Waits for the drive: not for interrupt handlers.
 */
#include "drivers/disk/block.h"

#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"
#include "kernel/lib/string.h"
#include "kernel/task/time.h"
#include "drivers/disk/trace.h"

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

struct block_device *block_of_number(uint32_t number)
{
	struct block_device *device = first;

	while (device && device->number != number)
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
	} else if (record->operation == 'R') {
		stats->requests[record->purpose]++;
		stats->sectors[record->purpose] += record->sectors;
	} else if (record->operation == 'W') {
		stats->written_requests++;
		stats->written_sectors += record->sectors;
	} else {
		stats->flushes++;
	}
}

/* A request has ended, with this result: it is counted, and remembered. */
static void finish(struct block_device *device, char operation, uint64_t lba, unsigned count,
		   enum block_purpose purpose, uint64_t start, int result)
{
	struct trace_record record = {
		.start_ns = start,
		.lba = lba,
		.duration_ns = time_ns() - start,
		.sectors = count,
		.result = result,
		.drive = device->name[2],
		.operation = operation,
		.purpose = purpose,
	};

	account(device, &record);
	if (device->whole)
		account(device->whole, &record);
	trace_add(&record);
}

/* Is the range wholly on the device? The comparison subtracts: lba + count could wrap. */
static bool is_inside(const struct block_device *device, const char *what, uint64_t lba,
		      unsigned count)
{
	if (count > 0 && lba < device->sectors && count <= device->sectors - lba)
		return true;
	printk("%s: %s of %u sectors at LBA %llu: the device has %llu sectors\n", device->name,
	       what, count, lba, device->sectors);
	return false;
}

/* Each part is accounted for by itself: the trace shows what the drive was asked. After an error
 * the rest is not tried. */
static int move(struct block_device *device, uint64_t lba, unsigned count, uint8_t *buffer,
		bool is_write, enum block_purpose purpose)
{
	struct block_device *drive = device->whole ? device->whole : device;

	if (!is_inside(device, is_write ? "write" : "read", lba, count))
		return -EINVAL;
	lba += device->start;
	for (unsigned left = count; left > 0;) {
		unsigned now = left < BLOCK_TRANSFER_SECTORS ? left : BLOCK_TRANSFER_SECTORS;
		struct block_piece piece = { buffer, now };
		struct block_transfer transfer = { .lba = lba,
						   .count = now,
						   .is_write = is_write,
						   .pieces = &piece,
						   .piece_count = 1 };
		uint64_t start = time_ns();
		int result = drive->ops->transfer(drive, &transfer);

		finish(device, is_write ? 'W' : 'R', lba, now, purpose, start, result);
		if (result < 0)
			return result;
		lba += now;
		left -= now;
		buffer += now * SECTOR_SIZE;
	}
	return 0;
}

int block_read(struct block_device *device, uint64_t lba, unsigned count, void *buffer,
	       enum block_purpose purpose)
{
	return move(device, lba, count, buffer, false, purpose);
}

/* The driver only reads from the buffer. */
int block_write(struct block_device *device, uint64_t lba, unsigned count, const void *buffer,
		enum block_purpose purpose)
{
	return move(device, lba, count, (void *)buffer, true, purpose);
}

int block_flush(struct block_device *device)
{
	struct block_device *drive = device->whole ? device->whole : device;
	uint64_t start = time_ns();
	int result = drive->ops->flush(drive);

	finish(device, 'F', 0, 0, BLOCK_OTHER, start, result);
	return result;
}
