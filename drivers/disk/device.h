/* A block device, as its driver, its queue and its users see it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SECTOR_SIZE 512u

struct block_device;

#define BLOCK_TRANSFER_SECTORS 256u /* the most that one ATA command can say */

/* A part of a transfer's memory: whole sectors, at a kernel address. */
struct block_piece {
	void *buffer;
	unsigned sectors;
};

/* A request to a driver: the sectors from lba on, and the memory for them, which need not be one
 * buffer. */
struct block_transfer {
	uint64_t lba;
	unsigned count; /* the sum of the pieces' sectors, up to BLOCK_TRANSFER_SECTORS; 0: flush */
	bool is_write;
	bool is_forced;	 /* it, and what was written before a flush, is safe when it ends */
	bool is_discard; /* `count` ranges (struct block_range) in the one piece, and no sectors */
	const struct block_piece *pieces;
	unsigned piece_count;
};

/* A range to discard, in ATA's layout. One request has up to BLOCK_RANGES of them. */
struct block_range {
	uint64_t lba : 48, sectors : 16;
};

#define BLOCK_RANGE_SECTORS 65528u /* the most that one range says, in whole pages */
#define BLOCK_RANGES	    (SECTOR_SIZE / sizeof(struct block_range))

/* The operation of a driver: moves sectors, flushes, or, only of a device that can_discard,
 * discards up to BLOCK_RANGES ranges, which may read as anything until they are written again. It
 * waits for the drive, and returns 0 or a negative errno; drives that share something take turns.
 */
struct block_ops {
	int (*transfer)(struct block_device *device, const struct block_transfer *transfer);
};

/* Why a request was made: the lab splits a file read's cost by it. */
enum block_purpose {
	BLOCK_DATA,    /* contents that the caller asked for */
	BLOCK_MAPPING, /* blocks that say where contents are: pointer blocks and extent trees */
	BLOCK_OTHER,   /* superblock, descriptors, inodes, directories, the journal */
	BLOCK_PURPOSES,
};

/* What is counted apart: reads by their purpose, and the other operations. */
enum block_group { BLOCK_WRITES = BLOCK_PURPOSES, BLOCK_FLUSHES, BLOCK_DISCARDS, BLOCK_GROUPS };

struct block_count {
	uint64_t requests;
	uint64_t merged; /* more requests, which joined another one */
	uint64_t sectors;
	uint64_t waited_ns; /* from a request's submission to its end */
};

/* Counted since boot, finished requests only. */
struct block_stats {
	struct block_count counts[BLOCK_GROUPS];
	uint64_t errors;
};

struct block_device {
	const char *name;	     /* "hda", "hda1" */
	uint32_t number;	     /* Linux's: major << 8 | minor */
	uint64_t sectors;	     /* capacity in sectors of 512 bytes */
	struct block_device *whole;  /* of a partition: its drive; NULL: this is a drive */
	uint64_t start;		     /* of a partition: where it begins on its drive */
	const struct block_ops *ops; /* of a drive; a partition needs none */
	void *driver;		     /* the driver's own data */
	bool can_discard;	     /* of a drive */
	bool is_rotational;	     /* of a drive: it has platters, or does not say */
	struct block_queue *queue;   /* of a drive: drivers/disk/queue.h */
	struct snapshot *snapshot;   /* of a drive: one that it has, or NULL */
	bool is_snapshot;	     /* waits in its origin's queue; no drive of its own */
	/* Of a drive, unless it is NULL: before sectors of it are written, by the task that serves
	 * its queue. */
	void (*before_write)(struct block_device *drive, uint64_t lba, unsigned count);
	struct block_stats stats;
	struct block_device *next;
};

/* The drive of a partition, or the drive itself. */
static inline struct block_device *block_drive(const struct block_device *device)
{
	return device->whole ? device->whole : (struct block_device *)device;
}
