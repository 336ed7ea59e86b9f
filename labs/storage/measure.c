/*
 * The experiment: seeded random reads of one sector, on a raw drive and on a file, and what each
 * cost.
 *
 * Every sector carries a stamp that says where it is (labs/storage/stamp.h). A read that brings
 * another sector, or an empty one, is counted as wrong, and the command fails.
 */
#include <stdbool.h>
#include <stddef.h>

#include "drivers/disk/trace.h"
#include "drivers/qemu/settings.h"
#include "fs/cache/bcache.h"
#include "kernel/lib/divide.h"
#include "kernel/lib/errno.h"
#include "kernel/cpu/machine.h"
#include "kernel/report/monitor.h"
#include "kernel/report/printk.h"
#include "kernel/lib/random.h"
#include "kernel/lib/string.h"
#include "kernel/task/time.h"
#include "labs/storage/lab.h"
#include "labs/storage/stamp.h"

#define READS 1000
#define SEED  2010

/* What is read: a whole drive, or a file on it. */
struct target {
	const char *label;
	struct block_device *device;
	struct ext_inode file; /* fs is NULL for a raw drive */
	uint64_t size;	       /* bytes */
};

struct result {
	struct block_stats stats; /* only what this run added */
	uint64_t wall_ns;
	uint32_t reads;
	uint32_t hits; /* reads that needed no request for a mapping block */
	uint32_t wrong;
};

/* --- one read --- */

/* From a raw drive or a file, by the same offset: the two rows differ in nothing else. */
static int read_sector(const struct target *target, uint64_t offset, void *sector)
{
	if (!target->file.fs)
		return block_read(target->device, offset / SECTOR_SIZE, 1, sector, BLOCK_DATA);
	int length = ext_read(&target->file, offset, sector, SECTOR_SIZE);

	return length < 0 ? length : length == SECTOR_SIZE ? 0 : -EIO;
}

/* Is this the sector of that offset? Its own LBA is believed, because the file's mapping decides
 * it. */
static bool is_right(const struct target *target, uint64_t offset,
		     const struct stamped_sector *sector)
{
	struct stamped_sector expected;

	stamp_fill(&expected, target->device->name[2], sector->stamp.lba, offset);
	return memcmp(sector, &expected, sizeof(expected)) == 0;
}

/* Said once a run, for the first wrong read: the rest usually has the same reason. */
static void complain(const struct target *target, uint64_t offset, int error,
		     const struct stamp *stamp)
{
	if (error < 0)
		printk("%s: reading at offset %llu: %s\n", target->label, offset,
		       errno_name(-error));
	else if (stamp->magic != STAMP_MAGIC)
		printk("%s: the sector at offset %llu carries no stamp (was the disk made for this "
		       "seed and number of reads?)\n",
		       target->label, offset);
	else
		printk("%s: the sector at offset %llu is that of offset %llu on hd%c\n",
		       target->label, offset, stamp->offset, (char)stamp->drive);
}

/* --- one run --- */

/* The drives count since boot; a row shows one run. */
static void subtract(struct block_stats *stats, const struct block_stats *before)
{
	for (unsigned purpose = 0; purpose < BLOCK_PURPOSES; purpose++) {
		stats->requests[purpose] -= before->requests[purpose];
		stats->sectors[purpose] -= before->sectors[purpose];
	}
	stats->errors -= before->errors;
}

/* The same seed gives the same offsets as on the host, which has stamped those sectors. */
static void read_at_random(const struct target *target, uint64_t seed, struct result *result)
{
	const uint64_t *mapping = &target->device->stats.requests[BLOCK_MAPPING];
	struct random random = { seed };
	struct stamped_sector sector;

	for (uint32_t i = 0; i < result->reads; i++) {
		uint64_t offset = random_below(&random, target->size / SECTOR_SIZE) * SECTOR_SIZE;
		uint64_t before = *mapping;
		int error = read_sector(target, offset, &sector);

		result->hits += *mapping == before;
		if (error == 0 && is_right(target, offset, &sector))
			continue;
		if (result->wrong++ == 0)
			complain(target, offset, error, &sector.stamp);
	}
}

/* Statistics and the clock are read immediately before and after: no printing in between. */
static struct result run(const struct target *target, uint32_t reads, uint64_t seed)
{
	struct result result = { .reads = reads };
	struct block_stats before = target->device->stats;
	uint64_t start = time_ns();

	read_at_random(target, seed, &result);
	result.wall_ns = time_ns() - start;
	result.stats = target->device->stats;
	subtract(&result.stats, &before);
	return result;
}

/* --- the table --- */

/* Events a second, in hundredths. */
static uint64_t rate(uint64_t events, uint64_t ns)
{
	uint64_t microseconds = divide64(ns, 1000, NULL);

	/* Both shifted until the divisor fits 32 bits: six digits are left, and the table shows
	 * fewer. */
	events *= 100000000;
	while (microseconds >> 32) {
		microseconds >>= 1;
		events >>= 1;
	}
	return microseconds ? divide64(events, microseconds, NULL) : 0;
}

/* Requests for one read, in hundredths, rounded as the report on the host does. */
static uint64_t per_read(uint64_t requests, uint32_t reads)
{
	return divide64(requests * 100 + reads / 2, reads, NULL);
}

/* Prints a number of hundredths, right-aligned. */
static void print_hundredths(uint64_t value, int width)
{
	uint32_t rest;
	uint64_t whole = divide64(value, 100, &rest);

	printk(" %*llu.%02u", width - 3, whole, rest);
}

/* The columns of iostat, and what the course adds to the right of the bar. */
static void print_head(void)
{
	printk("%-14s %10s %10s %10s %9s %9s | %6s %6s %6s %8s\n", "Device:", "tps", "Blk_read/s",
	       "Blk_wrtn/s", "Blk_read", "Blk_wrtn", "data", "map", "hits", "wall s");
}

static void print_row(const struct target *target, const struct result *result)
{
	const struct block_stats *stats = &result->stats;
	uint64_t requests = 0, sectors = 0;

	for (unsigned purpose = 0; purpose < BLOCK_PURPOSES; purpose++) {
		requests += stats->requests[purpose];
		sectors += stats->sectors[purpose];
	}
	printk("%-14s", target->label);
	print_hundredths(rate(requests, result->wall_ns), 10);
	print_hundredths(rate(sectors, result->wall_ns), 10);
	print_hundredths(0, 10);
	printk(" %9llu %9u |", sectors, 0);
	print_hundredths(per_read(stats->requests[BLOCK_DATA], result->reads), 6);
	print_hundredths(per_read(stats->requests[BLOCK_MAPPING], result->reads), 6);
	if (target->file.fs)
		printk(" %6u", result->hits);
	else
		printk(" %6s", "-"); /* a raw drive needs no mapping */
	print_hundredths(divide64(result->wall_ns, 10000000, NULL), 8);
	printk("\n");
}

/* --- the command --- */

/* Every sector of the drive is a candidate. */
static bool open_raw(struct target *target, const char *drive)
{
	*target = (struct target){ .label = "hdb raw", .device = lab_device(drive) };
	if (target->device)
		target->size = target->device->sectors * SECTOR_SIZE;
	return target->device;
}

/* The same file on both images, which the host has made with one layout. */
static bool open_file(struct target *target, const char *drive, const char *label)
{
	*target = (struct target){ .label = label, .device = lab_device(drive) };
	if (!target->device || lab_lookup(drive, "/big", &target->file) < 0)
		return false;
	target->size = target->file.size;
	return true;
}

/* Measures one target and prints its row. Returns whether every read was right. */
static bool measure(const struct target *target, uint32_t reads, uint64_t seed)
{
	if (target->size < SECTOR_SIZE) {
		printk("%s: nothing to read\n", target->label);
		return false;
	}
	bcache_drop();
	struct result result = run(target, reads, seed);

	print_row(target, &result);
	if (result.wrong)
		printk("%s: %u of %u reads were wrong\n", target->label, result.wrong, reads);
	return result.wrong == 0;
}

/* Three targets with the same reads. The cache is dropped before each: cold starts. */
static int run_measure(int count, char **arguments)
{
	uint64_t reads = READS, seed = setting_number("seed", SEED);
	struct target targets[3];
	bool good = true;

	if ((count > 1 && !lab_number(arguments[1], &reads)) ||
	    (count > 2 && !lab_number(arguments[2], &seed)))
		return EXIT_FAILURE;
	if (reads < 1 || reads > 10000000) {
		printk("measure: READS must be 1 to 10000000, not %llu\n", reads);
		return EXIT_FAILURE;
	}
	if (!open_raw(&targets[0], "hdb") || !open_file(&targets[1], "hdc", "hdc pointers") ||
	    !open_file(&targets[2], "hdd", "hdd extents"))
		return EXIT_FAILURE;
	printk("%llu random reads of 512 bytes, seed %llu; data, map: requests per read\n", reads,
	       seed);
	print_head();
	trace_mark();
	for (unsigned i = 0; i < 3; i++)
		good &= measure(&targets[i], reads, seed);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const struct command commands[] COMMAND_TABLE = {
	{ "measure", "[READS [SEED]]", "raw sectors against files: the lab's table", 0,
	  run_measure },
};
