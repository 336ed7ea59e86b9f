/* The files of /sys: fs/sys/attributes.c has them all. */
#pragma once

#include <stdint.h>

#include "drivers/disk/block.h"

#define SYSFS_TEXT 512u /* bytes of a file, at most */
#define SYSFS_LINE 32u	/* bytes of what is written to one, with its NUL */

/* The directories that have it: of a drive, of a partition, or a drive's `queue`. */
enum sysfs_place { SYSFS_DRIVE = 1, SYSFS_PARTITION = 2, SYSFS_QUEUE = 4 };

/* One of `text`, `value` and `show` says what is read. */
struct sysfs_attribute {
	const char *name;
	unsigned places;				      /* of enum sysfs_place */
	const char *text;				      /* always the same */
	uint64_t (*value)(const struct block_device *device); /* a decimal number */
	/* Writes the text as snprintk does, and returns its length. */
	int (*show)(const struct block_device *device, char *text, uint32_t size);
	/* Gets a line that was written, without its newline. Returns 0 or a negated errno. NULL:
	 * the file is only for reading. */
	int (*store)(const struct block_device *device, const char *line);
};

/* Ends with one that has no name. */
extern const struct sysfs_attribute sysfs_attributes[];
