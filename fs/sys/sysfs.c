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
#include "kernel/lib/startup.h"
#include "kernel/lib/string.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"
#include "mm/page_table.h"
#include "mm/pool.h"

/* ---- the files ---- */

static void show_number(struct procfs_text *text, const struct task *task)
{
	const struct block_device *device = text->object;

	procfs_print(text, "%u:%u\n", device->number >> 8, device->number & 0xff);
}

static void show_event(struct procfs_text *text, const struct task *task)
{
	const struct block_device *device = text->object;

	procfs_print(text, "MAJOR=%u\nMINOR=%u\nDEVNAME=%s\nDEVTYPE=%s\n", device->number >> 8,
		     device->number & 0xff, device->name, device->whole ? "partition" : "disk");
}

/* The columns of /proc/diskstats after the name. */
static void show_statistics(struct procfs_text *text, const struct task *task)
{
	uint64_t columns[BLOCK_COLUMNS];

	block_columns(text->object, columns);
	for (unsigned i = 0; i < BLOCK_COLUMNS; i++)
		procfs_print(text, "%s%8llu", i ? " " : "", columns[i]);
	procfs_print(text, "\n");
}

/* Requests that have not ended: reads and writes are not told apart. */
static void show_pending(struct procfs_text *text, const struct task *task)
{
	procfs_print(text, "%8u %8u\n", block_drive(text->object)->queue->pending, 0);
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

static int store_order(const void *object, const char *line)
{
	return block_set_order(((const struct block_device *)object)->queue, line);
}

static void show_sectors(struct procfs_text *text, const struct task *task)
{
	procfs_print(text, "%llu\n", ((const struct block_device *)text->object)->sectors);
}

static void show_start(struct procfs_text *text, const struct task *task)
{
	procfs_print(text, "%llu\n", ((const struct block_device *)text->object)->start);
}

static void show_partition(struct procfs_text *text, const struct task *task)
{
	const struct block_device *device = text->object;

	procfs_print(text, "%u\n", device->number - device->whole->number);
}

static void show_rotational(struct procfs_text *text, const struct task *task)
{
	procfs_print(text, "%u\n", ((const struct block_device *)text->object)->is_rotational);
}

static uint32_t discard_unit(const struct block_device *device)
{
	return block_can_discard(device) ? SECTOR_SIZE : 0;
}

static void show_discard_unit(struct procfs_text *text, const struct task *task)
{
	procfs_print(text, "%u\n", discard_unit(text->object));
}

static void show_discard_most(struct procfs_text *text, const struct task *task)
{
	procfs_print(text, "%u\n", discard_unit(text->object) * BLOCK_RANGES * BLOCK_RANGE_SECTORS);
}

_Static_assert(CACHED_RUN == 64 * 1024, "read_ahead_kb");
_Static_assert(BLOCK_TRANSFER_SECTORS *SECTOR_SIZE == 128 * 1024, "max_sectors_kb");

/* The directories that have a file: of a drive, of a partition, or a drive's `queue`. */
enum place { DRIVE = 1, PARTITION = 2, QUEUE = 4 };
#define EVERY (DRIVE | PARTITION)

static const struct {
	unsigned places; /* of enum place */
	struct procfs_entry entry;
} files[] = {
	{ EVERY, { "alignment_offset", .text = "0\n" } },
	{ EVERY, { "dev", .show = show_number } },
	{ EVERY, { "discard_alignment", .text = "0\n" } },
	{ DRIVE, { "hidden", .text = "0\n" } },
	{ EVERY, { "inflight", .show = show_pending } },
	{ PARTITION, { "partition", .show = show_partition } },
	{ DRIVE, { "removable", .text = "0\n" } },
	{ EVERY, { "ro", .text = "0\n" } },
	{ EVERY, { "size", .show = show_sectors } },
	{ PARTITION, { "start", .show = show_start } },
	{ EVERY, { "stat", .show = show_statistics } },
	{ EVERY, { "uevent", .show = show_event } },
	{ QUEUE, { "discard_granularity", .show = show_discard_unit } },
	{ QUEUE, { "discard_max_bytes", .show = show_discard_most } },
	{ QUEUE, { "discard_max_hw_bytes", .show = show_discard_most } },
	{ QUEUE, { "discard_zeroes_data", .text = "0\n" } },
	{ QUEUE, { "hw_sector_size", .text = "512\n" } },
	{ QUEUE, { "logical_block_size", .text = "512\n" } },
	{ QUEUE, { "max_hw_sectors_kb", .text = "128\n" } },
	{ QUEUE, { "max_sectors_kb", .text = "128\n" } },
	{ QUEUE, { "minimum_io_size", .text = "512\n" } },
	{ QUEUE, { "nr_requests", .text = "4294967295\n" } }, /* nothing limits them */
	{ QUEUE, { "optimal_io_size", .text = "0\n" } },
	{ QUEUE, { "physical_block_size", .text = "512\n" } },
	{ QUEUE, { "read_ahead_kb", .text = "64\n" } },
	{ QUEUE, { "rotational", .show = show_rotational } },
	{ QUEUE, { "scheduler", .show = show_order, .store = store_order } },
	{ QUEUE, { "write_zeroes_max_bytes", .text = "0\n" } },
	{ QUEUE, { "zoned", .text = "none\n" } },
};

/* ---- the devices ---- */

/* Device number index: of those of a drive, or (NULL) of all drives. */
static const void *device_of(const void *whole, uint32_t index, char *name)
{
	for (const struct block_device *each = block_first(); each; each = each->next)
		if (each->whole == whole && index-- == 0) {
			snprintk(name, PROCFS_NAME, "%s", each->name);
			return each;
		}
	return NULL;
}

static const void *drive_at(const void *unused, uint32_t index, char *name)
{
	return device_of(NULL, index, name);
}

static const struct block_device *any_at(uint32_t index)
{
	const struct block_device *device = block_first();

	while (device && index-- > 0)
		device = device->next;
	return device;
}

static const void *name_at(const void *unused, uint32_t index, char *name)
{
	const struct block_device *device = any_at(index);

	if (device)
		snprintk(name, PROCFS_NAME, "%s", device->name);
	return device;
}

static const void *number_at(const void *unused, uint32_t index, char *name)
{
	const struct block_device *device = any_at(index);

	if (device)
		snprintk(name, PROCFS_NAME, "%u:%u", device->number >> 8, device->number & 0xff);
	return device;
}

static const void *whole_of(const void *partition)
{
	return ((const struct block_device *)partition)->whole;
}

static int link_drive(const void *object, char *target, uint32_t size)
{
	return snprintk(target, size, "../devices/%s", ((const struct block_device *)object)->name);
}

static int link_device(const void *object, char *target, uint32_t size)
{
	const struct block_device *device = object;

	return snprintk(target, size, "../../devices/%s%s%s", block_drive(device)->name,
			device->whole ? "/" : "", device->whole ? device->name : "");
}

/* ---- start-up ---- */

static struct procfs_tree sys;
static struct procfs_entry top = { .is_directory = true, .tree = &sys };
static struct procfs_tree sys = {
	{ .type = "sysfs" }, "/sys", .magic = 0x62656572, .file_size = PAGE_SIZE, .top = &top
};

/* A copy of each file for each place that has it. */
static void add_files(struct procfs_entry *directory, enum place place)
{
	static struct pool copies = POOL_INITIALIZER(struct procfs_entry);

	for (unsigned i = sizeof(files) / sizeof(files[0]); i-- > 0;) {
		if (!(files[i].places & place))
			continue;
		struct procfs_entry *copy = pool_alloc(&copies);

		if (!copy)
			panic("no memory for the files of /sys");
		*copy = files[i].entry;
		procfs_register_in(directory, copy);
	}
}

static void sysfs_start(void)
{
	static struct procfs_entry partition = { .is_directory = true,
						 .object = device_of,
						 .up = whole_of };
	static struct procfs_entry drive = { .is_directory = true, .object = drive_at };
	static struct procfs_entry queue = { "queue", .is_directory = true };
	static struct procfs_entry link = { .link = link_drive, .object = drive_at };
	static struct procfs_entry name = { .link = link_device, .object = name_at };
	static struct procfs_entry number = { .link = link_device, .object = number_at };
	static struct procfs_entry devices = { "devices", .is_directory = true };
	static struct procfs_entry dev = { "dev", .is_directory = true };
	static struct procfs_entry class = { "class", .is_directory = true };
	static struct procfs_entry block = { "block", .is_directory = true };
	static struct procfs_entry names = { "block", .is_directory = true };
	static struct procfs_entry numbers = { "block", .is_directory = true };
	static const struct {
		struct procfs_entry *directory, *entry;
	} tree[] = {
		{ &top, &devices },   { &top, &dev },	      { &top, &class },
		{ &top, &block },     { &class, &names },     { &dev, &numbers },
		{ &block, &link },    { &names, &name },      { &numbers, &number },
		{ &devices, &drive }, { &drive, &partition }, { &drive, &queue },
	};

	for (unsigned i = 0; i < sizeof(tree) / sizeof(tree[0]); i++)
		procfs_register_in(tree[i].directory, tree[i].entry);
	add_files(&drive, DRIVE);
	add_files(&partition, PARTITION);
	add_files(&queue, QUEUE);
	procfs_tree_register(&sys);
}
STARTUP(sysfs_start)
