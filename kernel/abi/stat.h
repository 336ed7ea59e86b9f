/* File attributes, as stat returns them: Linux's numbers and structures for i386. */
#pragma once

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
#define S_ISVTX	 0001000
#define S_IXGRP	 0000010
#define S_IWOTH	 0000002
#define S_IXALL	 0111

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
