/*
 * Block devices: the one way to every disk, on which each request is checked, queued, counted and
 * traced (drivers/disk/queue.c).
 *
 *	block_read(hdb, lba 1000, 600 sectors)
 *		request 1000, 256	-> queue, driver, statistics, trace record
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
#include "drivers/disk/queue.h"
#include "kernel/lib/divide.h"

static struct block_device *first; /* in the order of registration */

/* At boot. Appends, so that devices are listed in the order in which they were found. */
void block_register(struct block_device *device)
{
	struct block_device **link = &first;

	if (!device->whole && !device->queue && !(device->queue = block_queue_create())) {
		printk("%s: no memory for its queue\n", device->name);
		return;
	}
	while (*link)
		link = &(*link)->next;
	*link = device;
}

/* Who still has the device gets -EINVAL from now on: no sector is on it. The structure stays the
 * caller's. */
void block_unregister(struct block_device *device)
{
	struct block_device **link = &first;

	while (*link && *link != device)
		link = &(*link)->next;
	if (*link)
		*link = device->next;
	device->next = NULL;
	device->sectors = 0;
}

/* For all who list devices: /proc, /sys, the prompt. The list changes at boot, and when a partition
 * table is read again. */
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

/* For special files, which have only the number. NULL, as block_find: there is none. */
struct block_device *block_of_number(uint32_t number)
{
	struct block_device *device = first;

	while (device && device->number != number)
		device = device->next;
	return device;
}

/* Is the range wholly on the device? The comparison subtracts: lba + count could wrap. */
static bool is_on_device(const struct block_device *device, const char *what, uint64_t lba,
			 uint64_t count)
{
	if (count > 0 && lba < device->sectors && count <= device->sectors - lba)
		return true;
	printk("%s: %s of %llu sectors at LBA %llu: the device has %llu sectors\n", device->name,
	       what, count, lba, device->sectors);
	return false;
}

/* Each part is a request of its own: the trace shows what the drive was asked. After an error the
 * rest is not tried. */
static int move_sectors(struct block_device *device, uint64_t lba, unsigned count, uint8_t *buffer,
			char operation, enum block_purpose purpose)
{
	if (!is_on_device(device, operation == 'W' ? "write" : "read", lba, count))
		return -EINVAL;
	while (count > 0) {
		unsigned now = count < BLOCK_TRANSFER_SECTORS ? count : BLOCK_TRANSFER_SECTORS;
		struct block_request request = { .device = device,
						 .lba = lba,
						 .count = now,
						 .buffer = buffer,
						 .operation = operation,
						 .purpose = purpose };

		block_submit(&request);
		int result = block_wait(&request);

		if (result < 0)
			return result;
		lba += now;
		count -= now;
		buffer += now * SECTOR_SIZE;
	}
	return 0;
}

/* Both wait until the drive has answered; `buffer` is memory of the kernel, mapped directly. */
int block_read(struct block_device *device, uint64_t lba, unsigned count, void *buffer,
	       enum block_purpose purpose)
{
	return move_sectors(device, lba, count, buffer, 'R', purpose);
}

/* The driver only reads from the buffer. */
int block_write(struct block_device *device, uint64_t lba, unsigned count, const void *buffer,
		enum block_purpose purpose)
{
	return move_sectors(device, lba, count, (void *)buffer, 'W', purpose);
}

/* A request like the others, so that it waits for those before it. */
int block_flush(struct block_device *device)
{
	struct block_request request = { .device = device,
					 .operation = 'F',
					 .purpose = BLOCK_OTHER };

	block_submit(&request);
	return block_wait(&request);
}

bool block_can_discard(const struct block_device *device)
{
	return block_drive(device)->can_discard;
}

/* A drive sees its own sectors: the ranges are moved by the partition's first one. */
int block_discard_ranges(struct block_device *device, struct block_range *ranges, unsigned count)
{
	struct block_request request = { .device = device,
					 .lba = ranges[0].lba,
					 .buffer = ranges,
					 .ranges = count,
					 .operation = 'D',
					 .purpose = BLOCK_OTHER };

	for (unsigned i = 0; i < count; i++) {
		if (!is_on_device(device, "discard", ranges[i].lba, ranges[i].sectors))
			return -EINVAL;
		request.count += ranges[i].sectors;
		ranges[i].lba += device->start;
	}
	if (!block_can_discard(device))
		return -EOPNOTSUPP;
	block_submit(&request);
	return block_wait(&request);
}

uint64_t block_ranges_add(struct block_range *ranges, unsigned *used, uint64_t lba, uint64_t count)
{
	uint64_t left = count;

	for (; left > 0 && *used < BLOCK_RANGES; ++*used) {
		unsigned now = left < BLOCK_RANGE_SECTORS ? left : BLOCK_RANGE_SECTORS;

		ranges[*used] = (struct block_range){ .lba = lba + count - left, .sectors = now };
		left -= now;
	}
	return count - left;
}

int block_discard(struct block_device *device, uint64_t lba, uint64_t count)
{
	struct block_range ranges[BLOCK_RANGES];
	int result = is_on_device(device, "discard", lba, count) ? 0 : -EINVAL;

	for (uint64_t added; count > 0 && result == 0; lba += added, count -= added) {
		unsigned used = 0;

		added = block_ranges_add(ranges, &used, lba, count);
		result = block_discard_ranges(device, ranges, used);
	}
	return result;
}

/* ---- what was counted ---- */

/* All purposes are one column in Linux's tables. */
struct block_count block_reads(const struct block_device *device)
{
	struct block_count sum = { 0 };

	for (unsigned purpose = 0; purpose < BLOCK_PURPOSES; purpose++) {
		const struct block_count *count = &device->stats.counts[purpose];

		sum.requests += count->requests;
		sum.merged += count->merged;
		sum.sectors += count->sectors;
		sum.waited_ns += count->waited_ns;
	}
	return sum;
}

static uint64_t ms_of(uint64_t ns)
{
	return divide64(ns, 1000000, NULL);
}

static void fill_columns(uint64_t columns[4], const struct block_count *count)
{
	columns[0] = count->requests;
	columns[1] = count->merged;
	columns[2] = count->sectors;
	columns[3] = ms_of(count->waited_ns);
}

/* Reads, writes, what is under way, then discards and flushes: in the order of diskstats. */
void block_columns(const struct block_device *device, uint64_t columns[BLOCK_COLUMNS])
{
	const struct block_count *counts = device->stats.counts, reads = block_reads(device);
	const struct block_queue *queue = block_drive(device)->queue;

	fill_columns(columns, &reads);
	fill_columns(columns + 4, &counts[BLOCK_WRITES]);
	columns[8] = queue->pending;
	columns[9] = ms_of(block_busy_ns(queue));
	columns[10] = ms_of(reads.waited_ns + counts[BLOCK_WRITES].waited_ns +
			    counts[BLOCK_DISCARDS].waited_ns);
	fill_columns(columns + 11, &counts[BLOCK_DISCARDS]);
	columns[15] = counts[BLOCK_FLUSHES].requests;
	columns[16] = ms_of(counts[BLOCK_FLUSHES].waited_ns);
}
