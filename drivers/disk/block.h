/* Block devices: one way to read and write any disk, with every request checked, counted and
 * traced. */
#pragma once

#include "drivers/disk/device.h"

/* Adds a device; the structure must live as long as the kernel. */
void block_register(struct block_device *device);

/* The device of this name ("hdb"), or NULL. */
struct block_device *block_find(const char *name);

/* For partitions: the device is no longer found, and has no sectors. The structure stays. */
void block_unregister(struct block_device *device);

/* The device of this number, or NULL. */
struct block_device *block_of_number(uint32_t number);

/* The first device; follow ->next. In the order of registration. */
struct block_device *block_first(void);

/*
 * Reads count sectors (at least 1; more than 256 become several requests) from lba into buffer.
 * Returns 0, -EINVAL for a range that is not wholly on the device (reported on the console), or the
 * driver's -EIO or -ETIMEDOUT. Waits, in a bounded way, for the drive.
 */
int block_read(struct block_device *device, uint64_t lba, unsigned count, void *buffer,
	       enum block_purpose purpose);

/* Writes, with the same rules. The drive may keep the sectors in a cache of its own, which a power
 * cut empties, and write them in any order: block_flush. */
int block_write(struct block_device *device, uint64_t lba, unsigned count, const void *buffer,
		enum block_purpose purpose);

/* After it has returned 0, what was written before is safe from a power cut; otherwise a negative
 * errno.
 */
int block_flush(struct block_device *device);

/* Tells the drive that nobody needs these sectors any more: they may read as anything until they
 * are written again. A barrier, as a flush is. -EINVAL for a range that is not wholly on the
 * device, -EOPNOTSUPP for a drive that cannot, or what the driver says; part of the range may be
 * gone. */
int block_discard(struct block_device *device, uint64_t lba, uint64_t count);

/* Appends as much of a run of sectors to *used ranges as BLOCK_RANGES of them hold. Returns how
 * much: all, or whole pages. */
uint64_t block_ranges_add(struct block_range *ranges, unsigned *used, uint64_t lba, uint64_t count);

/* The same for 1 to BLOCK_RANGES ranges, with one request, which leaves them as the drive sees
 * them. */
int block_discard_ranges(struct block_device *device, struct block_range *ranges, unsigned count);
bool block_can_discard(const struct block_device *device);

/* Reads of all purposes. */
struct block_count block_reads(const struct block_device *device);

/* The columns that /proc/diskstats has after a device's name (iostats.rst of Linux): times in ms.
 * A partition is busy, and has requests that wait, as its drive does. */
#define BLOCK_COLUMNS 17u
void block_columns(const struct block_device *device, uint64_t columns[BLOCK_COLUMNS]);
