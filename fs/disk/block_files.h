/* The files of block devices: /dev/hda, /dev/hda1, ... */
#pragma once

#include <stdbool.h>

struct block_device;

/* Gives each block device that is registered a file in /dev. Once, at start-up. */
void block_files_initialize(void);

/* Gives a device that came later its file in /dev; what has the name already stays. May sleep. */
void block_file_show(struct block_device *device);

/*
 * A file system has the device from now on, or (false) no longer. Before that, what programs have
 * written to its file is on the disk; while it lasts, reads of the file ask the disk and the block
 * cache each time, and writes go to both at once; and after it nothing that was read before is in
 * memory. -EBUSY: it, its drive or one of its partitions has a file system already, or is open with
 * O_EXCL, which in turn fails in this way while this lasts. Returns 0 or a negated errno. May
 * sleep.
 */
int block_file_claim(struct block_device *device, bool is_claimed);
