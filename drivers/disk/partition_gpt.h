/* Partitions by a GPT. */
#pragma once

struct block_device;

/* Registers the partitions that the drive's GPT names; what is wrong with it is said on the
 * console. */
void gpt_register(struct block_device *drive);
