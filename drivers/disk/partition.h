/* Partitions: ranges of a drive, as block devices of their own: hda1 and so on. Errors in a table,
 * or in a partition, are reported on the console. */
#pragma once

#include "drivers/disk/block.h"

#define PARTITIONS_PER_DRIVE 63

/* Reads a drive's table, MBR or GPT, and registers each partition: at boot, when the drive is
 * registered. */
void partitions_register(struct block_device *drive);

/* The table has changed: removes the partitions of a drive, which must not be in use, and registers
 * those of the new table. One of the same number is the same structure, with counts that begin
 * again. */
void partitions_reread(struct block_device *drive);

/* ---- for drivers/disk's own files ---- */

/* Removes the partitions of a drive. */
void partitions_remove(struct block_device *drive);

/* Registers the partitions that the drive's GPT names. */
void gpt_register(struct block_device *drive);

/* Registers partition `number` (1 to PARTITIONS_PER_DRIVE). One that is not wholly on the drive is
 * left out. */
void partition_add(struct block_device *drive, unsigned number, uint64_t start, uint64_t sectors);

/* Continues IEEE 802.3's CRC-32, as crc32 in zlib does: begin with 0. A bit at a time. */
uint32_t crc32(uint32_t crc, const uint8_t *bytes, uint32_t length);
