/*
 * The tree of /sys, as far as it is about block devices, with the machinery of /proc:
 *
 *	/sys/devices/hda/		a drive: its files, and
 *		queue/			those of its queue
 *		hda1/			a partition
 *	/sys/block/hda			-> ../devices/hda
 *	/sys/class/block/hda1		-> ../../devices/hda/hda1
 *	/sys/dev/block/3:1		-> ../../devices/hda/hda1
 *
 * The files are those of Linux (Documentation/ABI/stable/sysfs-block) that lsblk, iostat, blkid,
 * fdisk and mke2fs ask for. Sizes are in sectors of 512 bytes where the name does not say
 * otherwise.
 */
#include "drivers/disk/block.h"
#include "drivers/disk/queue.h"
#include "fs/cache/write_back.h"
#include "fs/proc/procfs.h"
#include "kernel/report/printk.h"

/* ---- the files ---- */

static const struct block_device *shown_device(const struct procfs_text *text)
{
	return text->object;
}

/* Bytes; 0 says that the drive cannot discard. */
static uint32_t discard_unit(const struct block_device *device)
{
	return block_can_discard(device) ? SECTOR_SIZE : 0;
}

PROCFS_SHOW(show_number, "%u:%u\n", shown_device(text)->number >> 8,
	    shown_device(text)->number & 0xff)
PROCFS_SHOW(show_event, "MAJOR=%u\nMINOR=%u\nDEVNAME=%s\nDEVTYPE=%s\n",
	    shown_device(text)->number >> 8, shown_device(text)->number & 0xff,
	    shown_device(text)->name, shown_device(text)->whole ? "partition" : "disk")
PROCFS_SHOW(show_sectors, "%llu\n", shown_device(text)->sectors)
PROCFS_SHOW(show_start, "%llu\n", shown_device(text)->start)
PROCFS_SHOW(show_partition, "%u\n", shown_device(text)->number - shown_device(text)->whole->number)
PROCFS_SHOW(show_rotational, "%u\n", shown_device(text)->is_rotational)
PROCFS_SHOW(show_discard_unit, "%u\n", discard_unit(text->object))
PROCFS_SHOW(show_discard_most, "%u\n",
	    discard_unit(text->object) * BLOCK_RANGES * BLOCK_RANGE_SECTORS)

/* Requests that have not ended: reads and writes are not told apart. */
PROCFS_SHOW(show_pending, "%8u %8u\n", block_drive(text->object)->queue->pending, 0)

/* The columns of /proc/diskstats after the name. */
static void show_statistics(struct procfs_text *text, const struct task *task)
{
	uint64_t columns[BLOCK_COLUMNS];

	block_columns(text->object, columns);
	for (unsigned i = 0; i < BLOCK_COLUMNS; i++)
		procfs_print(text, "%s%8llu", i ? " " : "", columns[i]);
	procfs_print(text, "\n");
}

/* All orders; the one in use in brackets. */
static void show_order(struct procfs_text *text, const struct task *task)
{
	const struct block_device *device = text->object;

	for (unsigned order = 0; order < BLOCK_ORDERS; order++)
		procfs_print(text, order == device->queue->order ? "%s[%s]" : "%s%s",
			     order ? " " : "", block_orders[order]);
	procfs_print(text, "\n");
}

/* A name of an order; -EINVAL for another one. */
static int store_order(const void *object, const char *line)
{
	return block_set_order(((const struct block_device *)object)->queue, line);
}

_Static_assert(CACHED_RUN == 64 * 1024, "read_ahead_kb");
_Static_assert(BLOCK_TRANSFER_SECTORS *SECTOR_SIZE == 128 * 1024, "max_sectors_kb");

/* ---- the devices ---- */

/* Finds the first device from object->number on: a drive's partition or (whole NULL) a drive, or
 * `any` of all. Its name is its own. */
static bool next_block_device(struct procfs_object *object, bool any,
			      const struct block_device *whole)
{
	uint32_t number = 0;

	for (const struct block_device *each = block_first(); each; each = each->next, number++)
		if (number >= object->number && (any || each->whole == whole)) {
			object->number = number;
			object->it = each;
			snprintk(object->name, sizeof(object->name), "%s", each->name);
			return true;
		}
	return false;
}

/* The partitions of the drive whose directory it is; in another directory, the drives. */
static bool next_device(const struct procfs_node *directory, struct procfs_object *object)
{
	return next_block_device(object, false, directory->object);
}

/* Drives and partitions, by their names, and by their numbers. */
static bool next_name(const struct procfs_node *directory, struct procfs_object *object)
{
	return next_block_device(object, true, NULL);
}

static bool next_number(const struct procfs_node *directory, struct procfs_object *object)
{
	if (!next_name(directory, object))
		return false;
	uint32_t number = ((const struct block_device *)object->it)->number;

	snprintk(object->name, sizeof(object->name), "%u:%u", number >> 8, number & 0xff);
	return true;
}

/* struct procfs_entry's up: from a partition's directory back to its drive's. A drive's is at the
 * top, and `whole` is NULL. */
static const void *whole_of(const void *partition)
{
	return ((const struct block_device *)partition)->whole;
}

static int link_drive(const void *object, char *target, uint32_t size)
{
	return snprintk(target, size, "../devices/%s", ((const struct block_device *)object)->name);
}

/* From a folder in /sys/class or /sys/dev; a partition is below its drive. */
static int link_device(const void *object, char *target, uint32_t size)
{
	const struct block_device *device = object;

	return snprintk(target, size, "../../devices/%s%s%s", block_drive(device)->name,
			device->whole ? "/" : "", device->whole ? device->name : "");
}

/* ---- the tree, from below ---- */

/* What nothing here can change has its text; the limits are those that _Static_assert compares. */
static struct procfs_entry of_queue[] = {
	{ "discard_granularity", .show = show_discard_unit },
	{ "discard_max_bytes", .show = show_discard_most },
	{ "discard_max_hw_bytes", .show = show_discard_most },
	{ "discard_zeroes_data", .text = "0" },
	{ "hw_sector_size", .text = "512" },
	{ "logical_block_size", .text = "512" },
	{ "max_hw_sectors_kb", .text = "128" },
	{ "max_sectors_kb", .text = "128" },
	{ "minimum_io_size", .text = "512" },
	{ "nr_requests", .text = "4294967295" }, /* nothing limits them */
	{ "optimal_io_size", .text = "0" },
	{ "physical_block_size", .text = "512" },
	{ "read_ahead_kb", .text = "64" },
	{ "rotational", .show = show_rotational },
	{ "scheduler", .show = show_order, .store = store_order },
	{ "write_zeroes_max_bytes", .text = "0" },
	{ "zoned", .text = "none" },
};

#define FILES_OF_DEVICE                                                                            \
	{ "alignment_offset", .text = "0" }, { "dev", .show = show_number },                       \
	    { "discard_alignment", .text = "0" }, { "inflight", .show = show_pending },            \
	    { "ro", .text = "0" }, { "size", .show = show_sectors },                               \
	    { "stat", .show = show_statistics },                                                   \
	{                                                                                          \
		"uevent", .show = show_event                                                       \
	}

static struct procfs_entry of_partition[] = {
	FILES_OF_DEVICE,
	{ "partition", .show = show_partition },
	{ "start", .show = show_start },
};

static struct procfs_entry of_drive[] = {
	FILES_OF_DEVICE,
	{ "hidden", .text = "0" },
	{ "removable", .text = "0" },
	{ "queue", PROCFS_ENTRIES(of_queue) },
	{ .each = next_device, .up = whole_of, PROCFS_ENTRIES(of_partition) },
};

static struct procfs_entry drives[] = { { .each = next_device, PROCFS_ENTRIES(of_drive) } };
static struct procfs_entry drive_links[] = { { .each = next_device, .link = link_drive } };
static struct procfs_entry name_links[] = { { .each = next_name, .link = link_device } };
static struct procfs_entry number_links[] = { { .each = next_number, .link = link_device } };
static struct procfs_entry of_class[] = { { "block", PROCFS_ENTRIES(name_links) } };
static struct procfs_entry of_dev[] = { { "block", PROCFS_ENTRIES(number_links) } };

static struct procfs_entry of_sys[] = {
	{ "block", PROCFS_ENTRIES(drive_links) },
	{ "class", PROCFS_ENTRIES(of_class) },
	{ "dev", PROCFS_ENTRIES(of_dev) },
	{ "devices", PROCFS_ENTRIES(drives) },
};

static void sysfs_start(void)
{
	static struct procfs_tree sys = {
		{ .type = "sysfs" }, "/sys", .magic = 0x62656572, .file_size = PAGE_SIZE
	};
	static struct procfs_entry top = { .tree = &sys };

	procfs_register(&top, of_sys, sizeof(of_sys) / sizeof(*of_sys));
	procfs_mount_tree(&top);
}
STARTUP(sysfs_start)
