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
	unsigned count; /* 1 to BLOCK_TRANSFER_SECTORS: the sum of the pieces' sectors */
	bool is_write;
	bool is_forced; /* a write that is safe from a power cut when it ends */
	bool is_ranges; /* not sectors, but a list of ranges to discard: inside drivers/disk/ata */
	const struct block_piece *pieces;
	unsigned piece_count;
};

/* A range to discard, in ATA's layout. One request has up to BLOCK_RANGES of them. */
struct block_range {
	uint64_t lba : 48, sectors : 16;
};

#define BLOCK_RANGE_SECTORS 65528u /* the most that one range says, in whole pages */
#define BLOCK_RANGES	    (SECTOR_SIZE / sizeof(struct block_range))

/* The operations of a driver. They wait for the drive, and return 0 or a negative errno; drives
 * that share something take turns. */
struct block_ops {
	int (*transfer)(struct block_device *device, const struct block_transfer *transfer);
	/* What was written before is safe from a power cut when it returns 0. */
	int (*flush)(struct block_device *device);
	/* The contents of up to BLOCK_RANGES ranges are no longer needed: until they are written
	 * again they may read as anything. Only of a device that can_discard. */
	int (*discard)(struct block_device *device, const struct block_range *ranges,
		       unsigned count);
};

/* Why a request was made: the lab splits a file read's cost by it. */
enum block_purpose {
	BLOCK_DATA,    /* contents that the caller asked for */
	BLOCK_MAPPING, /* blocks that say where contents are: pointer blocks and extent trees */
	BLOCK_OTHER,   /* superblock, descriptors, inodes, directories, the journal */
	BLOCK_PURPOSES,
};

/* Counted since boot, finished requests only. */
struct block_stats {
	uint64_t requests[BLOCK_PURPOSES]; /* reads */
	uint64_t sectors[BLOCK_PURPOSES];
	uint64_t written_requests;
	uint64_t written_sectors;
	uint64_t flushes;
	uint64_t merged[2];    /* requests that joined another one: reads, writes */
	uint64_t waited_ns[2]; /* from a request's submission to its end: reads, writes */
	uint64_t flush_ns;
	uint64_t discards;
	uint64_t discarded_sectors;
	uint64_t discard_ns;
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
