/* Files in Linux's system calls for i386. */
#pragma once

#include <stdint.h>

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

/* Of readv and writev. */
struct linux_vector {
	uint32_t base;
	uint32_t length;
};

#define VECTORS_MAX 1024

/* Commands of ioctl for any file. */
#define FIONREAD 0x541b
#define FIONBIO	 0x5421
