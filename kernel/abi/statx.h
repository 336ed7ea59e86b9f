/* More about a file, and about its file system: statx, statfs64, and the older stat. */
#pragma once

#include "kernel/abi/clocks.h"

/* Instead of nanoseconds, in utimensat. */
#define UTIME_NOW  0x3fffffff
#define UTIME_OMIT 0x3ffffffe

/* The result of the older stat. */
struct linux_stat {
	uint32_t filesystem, number;
	uint16_t mode, links, owner, group;
	uint32_t device, size, block_size, blocks;
	struct linux_timespec accessed, modified, changed;
	uint32_t padding[2];
};

#define STATX_BASIC    0x7ff
#define STATX_RESERVED 0x80000000 /* must not be asked for */

struct linux_statx {
	uint32_t mask, block_size;
	uint64_t attributes;
	uint32_t links, owner, group;
	uint16_t mode, padding_0;
	uint64_t number, size, blocks, attributes_mask;
	struct linux_timespec64 accessed, born, changed, modified;
	uint32_t device_major, device_minor;
	uint32_t filesystem_major, filesystem_minor;
	uint64_t padding_1[14];
};

/* In its flags. */
#define STATFS_READ_ONLY      1
#define STATFS_VALID	      0x20 /* the flags mean something */
#define STATFS_NO_ACCESS_TIME 0x400

struct linux_statfs64 {
	uint32_t type;
	uint32_t block_size;
	uint64_t blocks, blocks_free, blocks_available;
	uint64_t inodes, inodes_free;
	int32_t identity[2];
	uint32_t name_max;
	uint32_t fragment_size;
	uint32_t flags;
	uint32_t padding[4];
} __attribute__((packed));
