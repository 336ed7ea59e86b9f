/*
 * The stamp in each sector of the lab's disks, which says where the sector is. The host writes
 * stamps, the guest checks them, so a read that came from a wrong place cannot give a good figure.
 */
#pragma once

#include "kernel/lib/random.h"

#define STAMP_MAGIC 0x504d4154534f4950u /* "PIOSTAMP", little-endian */

/* The first bytes of a stamped sector; the rest is SplitMix64 of (drive, lba), 64-bit words. */
struct stamp {
	uint64_t magic;
	uint64_t drive;	 /* 'b', 'c' or 'd': the last letter of the drive's name */
	uint64_t lba;	 /* of the drive, in sectors of 512 bytes */
	uint64_t offset; /* where the reader asked: byte offset in the file, or in the raw drive */
};

/* A whole stamped sector, as it is on the disk. Numbers are little-endian. */
struct stamped_sector {
	struct stamp stamp;
	uint64_t noise[60]; /* so that half a sector, or one of another drive, does not match */
};

/* Writes all 512 bytes; to check a sector, fill another and compare the two. */
static inline void stamp_fill(struct stamped_sector *sector, char drive, uint64_t lba,
			      uint64_t offset)
{
	struct random noise = { (uint64_t)drive << 56 | lba };

	sector->stamp = (struct stamp){ STAMP_MAGIC, (uint64_t)drive, lba, offset };
	for (unsigned i = 0; i < sizeof(sector->noise) / sizeof(sector->noise[0]); i++)
		sector->noise[i] = random_next(&noise);
}
