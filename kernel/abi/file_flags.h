/* ioctls of files of a file system: flags, and where their blocks are. Linux's numbers and
 * structures for i386. */
#pragma once

#include <stdint.h>

#define FIBMAP		  0x0001
#define FIGETBSZ	  0x0002
#define FS_IOC_GETFLAGS	  0x80046601
#define FS_IOC_SETFLAGS	  0x40046602
#define FS_IOC_GETVERSION 0x80047601
#define FS_IOC_FIEMAP	  0xc020660b
#define FS_IOC_FSGETXATTR 0x801c581f
#define FS_IOC_FSSETXATTR 0x401c5820

/* Flags as all file systems have them, in another order. */
struct linux_fsxattr {
	uint32_t flags, extent_size, extents, project, copy_extent_size;
	uint8_t padding[8];
};

#define EBADR 53 /* fiemap: a flag that is not known */

#define FIEMAP_FLAG_SYNC  1u
#define FIEMAP_FLAG_CACHE 4u
#define FIEMAP_EXTENTS	  (UINT32_MAX / sizeof(struct linux_extent))

/* Bytes of the file that are asked for; `mapped` extents follow, of at most `count`, or (0) they
 * are only counted. */
struct linux_fiemap {
	uint64_t start, length;
	uint32_t flags, mapped, count, reserved;
};

#define FIEMAP_EXTENT_LAST	0x1u
#define FIEMAP_EXTENT_UNWRITTEN 0x800u
#define FIEMAP_EXTENT_MERGED	0x1000u /* from a map that names single blocks */

struct linux_extent {
	uint64_t logical, physical, length, reserved_0[2];
	uint32_t flags, reserved_1[3];
};
