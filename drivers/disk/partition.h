/* Partitions: ranges of a drive, as block devices of their own: hda1 and so on. */
#pragma once

#include <stdint.h>

#include "drivers/disk/block.h"

#define PARTITIONS_PER_DRIVE 63

/* Registers partition `number` (1 to PARTITIONS_PER_DRIVE). One that is not wholly on the drive is
 * named on the console, and left out. */
void partition_add(struct block_device *drive, unsigned number, uint64_t start, uint64_t sectors);
