/* A drive's partition table, MBR or GPT. */
#pragma once

struct block_device;

/* Reads the table and registers each partition (drivers/disk/partition.h). What is wrong with a
 * table is said on the console. At boot, when the drive is registered. */
void partitions_register(struct block_device *drive);
