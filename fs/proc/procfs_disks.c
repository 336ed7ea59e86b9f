/*
 * /proc files about block devices: /proc/diskstats and /proc/partitions as Linux has them, and
 * /proc/disks, which Linux does not have:
 *
 *	name order	busy ms	idle ms	requests	mean us	99 % below us
 *	hdb  c-look	1520	48480	3000		505	1024
 *	hdc  fifo	9120	40880	3000		3040	65536	slow
 *
 * "slow": beside the other drives (drivers/disk/latency.h). A line "hdb fifo" or "hdb c-look" that
 * is written to the file chooses the order of the drive's queue.
 */
#include "drivers/disk/block.h"
#include "drivers/disk/queue.h"
#include "fs/proc/procfs.h"
#include "kernel/lib/divide.h"
#include "kernel/lib/errno.h"
#include "kernel/task/time.h"

#define PEERS 16u

static uint64_t milliseconds_of(uint64_t ns)
{
	return divide64(ns, 1000000, NULL);
}

static void show_diskstats(struct procfs_text *text, const struct task *task)
{
	for (const struct block_device *each = block_first(); each; each = each->next) {
		uint64_t columns[BLOCK_COLUMNS];

		block_columns(each, columns);
		procfs_print(text, "%4u %7u %s", each->number >> 8, each->number & 0xff,
			     each->name);
		for (unsigned i = 0; i < BLOCK_COLUMNS; i++)
			procfs_print(text, " %llu", columns[i]);
		procfs_print(text, "\n");
	}
}

/* In units of 1 KiB. */
static void show_partitions(struct procfs_text *text, const struct task *task)
{
	procfs_print(text, "major minor  #blocks  name\n\n");
	for (const struct block_device *each = block_first(); each; each = each->next)
		procfs_print(text, "%4u  %7u %10llu %s\n", each->number >> 8, each->number & 0xff,
			     each->sectors / 2, each->name);
}

/* Is a drive slow compared with the others? */
static bool is_slow(const struct block_device *drive)
{
	const struct latency *peers[PEERS];
	unsigned count = 0;

	for (const struct block_device *each = block_first(); each; each = each->next)
		if (each->queue && !each->is_snapshot && each != drive && count < PEERS)
			peers[count++] = &each->queue->latency;
	return latency_is_suspicious(&drive->queue->latency, peers, count);
}

static void show_disks(struct procfs_text *text, const struct task *task)
{
	procfs_print(text, "name order     busy ms    idle ms   requests    mean us  99%%< us\n");
	for (const struct block_device *each = block_first(); each; each = each->next) {
		if (!each->queue || each->is_snapshot)
			continue;
		uint64_t busy = milliseconds_of(block_busy_ns(each->queue));
		const struct latency *latency = &each->queue->latency;

		procfs_print(text, "%-4s %-6s %10llu %10llu %10u %10u %8u%s\n", each->name,
			     block_orders[each->queue->order], busy,
			     milliseconds_of(time_ns()) - busy, latency->count,
			     latency_mean_us(latency), latency_below_us(latency, 990),
			     is_slow(each) ? " slow" : "");
	}
}

/* "hdb fifo". */
static int choose_order(const void *unused, const char *line)
{
	for (const struct block_device *each = block_first(); each; each = each->next) {
		uint32_t length = strlen(each->name);

		if (!each->queue || memcmp(line, each->name, length) != 0 || line[length] != ' ')
			continue;
		return block_set_order(each->queue, line + length + 1);
	}
	return -EINVAL;
}

/* A partition's sectors are its drive's. */
void procfs_traffic(uint64_t *read, uint64_t *written)
{
	for (const struct block_device *each = block_first(); each; each = each->next) {
		uint64_t columns[BLOCK_COLUMNS];

		if (!each->queue || each->is_snapshot)
			continue;
		block_columns(each, columns);
		*read += columns[2];
		*written += columns[6];
	}
}

/* Some 100 bytes for each device, of which there may be more than a page has room for. */
static struct procfs_entry disks[] = {
	{ "diskstats", .show = show_diskstats, .order = 1 },
	{ "partitions", .show = show_partitions },
	{ "disks", .show = show_disks, .store = choose_order },
};
PROCFS(&procfs_root, disks)
