/* Partitions: ranges of a drive, as block devices of their own: hda1 and so on. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drivers/disk/block.h"

#define PARTITIONS_PER_DRIVE 63

/* Reads the drive's partition table, MBR or GPT, and registers each partition. What is wrong with a
 * table is said on the console. At boot. */
void partitions_register(struct block_device *drive);

/* ---- between the two formats ---- */

/* Registers partition `number` (1 to PARTITIONS_PER_DRIVE), if it is wholly on the drive. */
void partition_add(struct block_device *drive, unsigned number, uint64_t start, uint64_t sectors);

/* Registers what the drive's GPT says. */
void gpt_register(struct block_device *drive);
