/* Files in Linux's system calls for i386: numbers, flags and structures. */
#pragma once

#include <stdint.h>

#include "kernel/abi/time.h"

#define PATH_MAX 4096 /* bytes, with the NUL */
#define NAME_MAX 255  /* bytes, without it */
#define PIPE_BUF 4096 /* a write to a pipe up to this size is not torn apart */

/* Flags of open. */
#define O_ACCMODE   03
#define O_RDONLY    00
#define O_WRONLY    01
#define O_RDWR	    02
#define O_CREAT	    0100
#define O_EXCL	    0200
#define O_NOCTTY    0400
#define O_TRUNC	    01000
#define O_APPEND    02000
#define O_NONBLOCK  04000
#define O_DIRECT    040000
#define O_DIRECTORY 0200000
#define O_NOFOLLOW  0400000
#define O_NOATIME   01000000
#define O_CLOEXEC   02000000
#define O_PATH	    010000000 /* only to name what is there */

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

/* Flags of the calls whose name ends in "at", and the descriptor that means the working directory.
 */
#define AT_FDCWD	    -100
#define AT_SYMLINK_NOFOLLOW 0x100
#define AT_EACCESS	    0x200
#define AT_REMOVEDIR	    0x200
#define AT_SYMLINK_FOLLOW   0x400
#define AT_NO_AUTOMOUNT	    0x800
#define AT_EMPTY_PATH	    0x1000
#define AT_STATX_SYNC	    0x6000

#define F_DUPFD		0
#define F_GETFD		1
#define F_SETFD		2
#define F_GETFL		3
#define F_SETFL		4
#define F_DUPFD_CLOEXEC 1030
#define F_GETPIPE_SZ	1032
#define FD_CLOEXEC	1

#define SEEK_SET  0
#define SEEK_CUR  1
#define SEEK_END  2
#define SEEK_DATA 3
#define SEEK_HOLE 4

#define X_OK 1

#define UTIME_NOW  0x3fffffff
#define UTIME_OMIT 0x3ffffffe

#define POLLIN	   0x001
#define POLLPRI	   0x002
#define POLLOUT	   0x004
#define POLLERR	   0x008
#define POLLHUP	   0x010
#define POLLNVAL   0x020
#define POLLRDNORM 0x040
#define POLLWRNORM 0x100

struct linux_poll {
	int32_t descriptor;
	int16_t events;
	int16_t ready;
};

struct linux_vector {
	uint32_t base;
	uint32_t length;
};

#define VECTORS_MAX 1024

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

/* The head of a directory entry; the name and its NUL follow. */
struct linux_dirent64 {
	uint64_t number;
	int64_t next;
	uint16_t length; /* of the whole entry */
	uint8_t type;	 /* an inode's mode >> 12 */
} __attribute__((packed));

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

/* Commands of ioctl for any file. */
#define FIONREAD 0x541b
#define FIONBIO	 0x5421
