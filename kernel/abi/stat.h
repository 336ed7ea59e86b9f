/* What is known of a file: Linux's numbers and structures for i386. */
#pragma once

#include <stdint.h>

#include "kernel/abi/time.h"

/* An inode's mode: its type, and who may do what. */
#define S_IFMT	 0170000
#define S_IFIFO	 0010000
#define S_IFCHR	 0020000
#define S_IFDIR	 0040000
#define S_IFBLK	 0060000
#define S_IFREG	 0100000
#define S_IFLNK	 0120000
#define S_IFSOCK 0140000
#define S_ALL	 07777
#define S_ISUID	 0004000
#define S_ISGID	 0002000
#define S_IXGRP	 0000010
#define S_IXALL	 0111

/* Instead of nanoseconds, in utimensat. */
#define UTIME_NOW  0x3fffffff
#define UTIME_OMIT 0x3ffffffe

/* The result of stat64 and its like. */
struct linux_stat64 {
	uint64_t filesystem;
	uint32_t padding_0, number_low, mode, links, owner, group;
	uint64_t device;
	uint32_t padding_1;
	uint64_t size;
	uint32_t block_size;
	uint64_t blocks; /* of 512 bytes */
	struct linux_timespec accessed, modified, changed;
	uint64_t number;
} __attribute__((packed));

/* The result of the older stat. */
struct linux_stat {
	uint32_t filesystem, number;
	uint16_t mode, links, owner, group;
	uint32_t device, size, block_size, blocks;
	struct linux_timespec accessed, modified, changed;
	uint32_t padding[2];
};

#define STATX_BASIC 0x7ff

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
