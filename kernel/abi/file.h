/* Files in Linux's system calls for i386: what no lesson uses. */
#pragma once

#include <stdint.h>

/* Of open: what only Linux's programs ask for, and few do. */
#define O_ASYNC	    020000 /* is told again, and sends no SIGIO */
#define O_DIRECT    040000
#define O_DSYNC	    010000 /* a write is safe before it returns; with O_SYNC, so are times */
#define O_SYNC	    04010000
#define O_NOATIME   01000000
#define O_LARGEFILE 0100000 /* may be larger than 2 GiB */

#define O_UNNAMED   020000000 /* O_TMPFILE, with O_DIRECTORY: refused */
#define O_DIRECTORY 0200000
#define O_NOFOLLOW  0400000
#define O_PATH	    010000000 /* only a reference to the file, not for reading or writing */

/* Of fcntl. */
#define F_SETFD	     2
#define F_GETFL	     3
#define F_SETFL	     4
#define F_SETOWN     8
#define F_GETOWN     9
#define F_GETOWN_EX  16 /* two words: what it is, and its number */
#define F_SETPIPE_SZ 1031
#define F_GETPIPE_SZ 1032

#define F_OWNER_PID  1
#define F_OWNER_PGRP 2

/* Of fcntl: locks. The first three have a struct linux_lock, the others a struct linux_lock64; the
 * last three are of open files. */
#define F_GETLK	     5
#define F_SETLK	     6
#define F_SETLKW     7
#define F_GETLK64    12
#define F_SETLK64    13
#define F_SETLKW64   14
#define F_OFD_GETLK  36
#define F_OFD_SETLK  37
#define F_OFD_SETLKW 38

struct linux_lock {
	int16_t type, whence;  /* F_RDLCK, ...; SEEK_SET, ... */
	int32_t first, length; /* 0: to the end; negative: before `first` */
	int32_t pid;
};

struct linux_lock64 {
	int16_t type, whence;
	int64_t first, length;
	int32_t pid;
};

#define F_RDLCK 0
#define F_WRLCK 1
#define F_UNLCK 2

/* Of flock. */
#define LOCK_SH 1
#define LOCK_EX 2
#define LOCK_NB 4
#define LOCK_UN 8

/* Of lseek. */
#define SEEK_DATA 3
#define SEEK_HOLE 4

/* What access asks for. */
#define F_OK 0
#define X_OK 1
#define W_OK 2
#define R_OK 4

/* Of setxattr. */
#define XATTR_CREATE   1 /* -EEXIST if it is there */
#define XATTR_REPLACE  2 /* -ENODATA if not */
#define XATTR_NAME_MAX 255
#define XATTR_SIZE_MAX 65536 /* bytes of a value, and of a list of names */

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
#define FIOASYNC 0x5452
