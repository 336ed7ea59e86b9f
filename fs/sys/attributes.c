/*
 * The files of a block device in /sys, as Linux has them (Documentation/ABI/stable/sysfs-block):
 * those that lsblk, iostat, blkid, fdisk and mke2fs ask for. Sizes are in sectors of 512 bytes
 * where the name does not say otherwise.
 */
#include "fs/sys/attributes.h"

#include <stddef.h>

#include "drivers/disk/queue.h"
#include "fs/cache/write_back.h"
#include "kernel/lib/string.h"
#include "kernel/report/printk.h"

#define EVERY (SYSFS_DRIVE | SYSFS_PARTITION)

static int show_number(const struct block_device *device, char *text, uint32_t size)
{
	return snprintk(text, size, "%u:%u\n", device->number >> 8, device->number & 0xff);
}

static int show_event(const struct block_device *device, char *text, uint32_t size)
{
	return snprintk(text, size, "MAJOR=%u\nMINOR=%u\nDEVNAME=%s\nDEVTYPE=%s\n",
			device->number >> 8, device->number & 0xff, device->name,
			device->whole ? "partition" : "disk");
}

/* The columns of /proc/diskstats after the name. */
static int show_statistics(const struct block_device *device, char *text, uint32_t size)
{
	uint64_t columns[BLOCK_COLUMNS];
	int length = 0;

	block_columns(device, columns);
	for (unsigned i = 0; i < BLOCK_COLUMNS; i++)
		length +=
		    snprintk(text + length, size - length, "%s%8llu", i ? " " : "", columns[i]);
	return length + snprintk(text + length, size - length, "\n");
}

/* Requests that have not ended: reads and writes are not told apart. */
static int show_pending(const struct block_device *device, char *text, uint32_t size)
{
	return snprintk(text, size, "%8u %8u\n", block_drive(device)->queue->pending, 0);
}

/* All orders; the one in use in brackets. */
static int show_order(const struct block_device *device, char *text, uint32_t size)
{
	int length = 0;

	for (unsigned order = 0; order < BLOCK_ORDERS; order++)
		length +=
		    snprintk(text + length, size - length,
			     order == device->queue->order ? "[%s] " : "%s ", block_orders[order]);
	text[length - 1] = '\n';
	return length;
}

static int store_order(const struct block_device *device, const char *line)
{
	return block_set_order(device->queue, line);
}

static uint64_t sectors(const struct block_device *device)
{
	return device->sectors;
}

static uint64_t start(const struct block_device *device)
{
	return device->start;
}

static uint64_t partition(const struct block_device *device)
{
	return device->number - device->whole->number;
}

static uint64_t rotational(const struct block_device *device)
{
	return device->is_rotational;
}

static uint64_t discard_unit(const struct block_device *device)
{
	return block_can_discard(device) ? SECTOR_SIZE : 0;
}

static uint64_t discard_most(const struct block_device *device)
{
	return discard_unit(device) * BLOCK_RANGES * BLOCK_RANGE_SECTORS;
}

_Static_assert(CACHED_RUN == 64 * 1024, "read_ahead_kb");
_Static_assert(BLOCK_TRANSFER_SECTORS *SECTOR_SIZE == 128 * 1024, "max_sectors_kb");

const struct sysfs_attribute sysfs_attributes[] = {
	{ "alignment_offset", EVERY, .text = "0\n" },
	{ "dev", EVERY, .show = show_number },
	{ "discard_alignment", EVERY, .text = "0\n" },
	{ "hidden", SYSFS_DRIVE, .text = "0\n" },
	{ "inflight", EVERY, .show = show_pending },
	{ "partition", SYSFS_PARTITION, .value = partition },
	{ "removable", SYSFS_DRIVE, .text = "0\n" },
	{ "ro", EVERY, .text = "0\n" },
	{ "size", EVERY, .value = sectors },
	{ "start", SYSFS_PARTITION, .value = start },
	{ "stat", EVERY, .show = show_statistics },
	{ "uevent", EVERY, .show = show_event },
	{ "discard_granularity", SYSFS_QUEUE, .value = discard_unit },
	{ "discard_max_bytes", SYSFS_QUEUE, .value = discard_most },
	{ "discard_max_hw_bytes", SYSFS_QUEUE, .value = discard_most },
	{ "discard_zeroes_data", SYSFS_QUEUE, .text = "0\n" },
	{ "hw_sector_size", SYSFS_QUEUE, .text = "512\n" },
	{ "logical_block_size", SYSFS_QUEUE, .text = "512\n" },
	{ "max_hw_sectors_kb", SYSFS_QUEUE, .text = "128\n" },
	{ "max_sectors_kb", SYSFS_QUEUE, .text = "128\n" },
	{ "minimum_io_size", SYSFS_QUEUE, .text = "512\n" },
	{ "nr_requests", SYSFS_QUEUE, .text = "4294967295\n" }, /* nothing limits them */
	{ "optimal_io_size", SYSFS_QUEUE, .text = "0\n" },
	{ "physical_block_size", SYSFS_QUEUE, .text = "512\n" },
	{ "read_ahead_kb", SYSFS_QUEUE, .text = "64\n" },
	{ "rotational", SYSFS_QUEUE, .value = rotational },
	{ "scheduler", SYSFS_QUEUE, .show = show_order, .store = store_order },
	{ "write_zeroes_max_bytes", SYSFS_QUEUE, .text = "0\n" },
	{ "zoned", SYSFS_QUEUE, .text = "none\n" },
	{ NULL },
};
