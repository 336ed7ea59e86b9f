/* The attributes of a file. */
#pragma once

#include <sys/types.h>
#include <time.h>

#include "kernel/abi/stat.h"

/* As Linux's stat64 of the i386 has it. */
struct stat {
	dev_t st_dev;
	uint32_t padding;
	uint32_t short_ino;
	mode_t st_mode;
	unsigned st_nlink;
	uid_t st_uid;
	gid_t st_gid;
	dev_t st_rdev;
	uint32_t more_padding;
	off_t st_size;
	unsigned st_blksize;
	uint64_t st_blocks;
	struct timespec st_atim, st_mtim, st_ctim;
	ino_t st_ino;
};

#define S_ISFIFO(mode) (((mode) & S_IFMT) == S_IFIFO)
#define S_ISCHR(mode)  (((mode) & S_IFMT) == S_IFCHR)
#define S_ISDIR(mode)  (((mode) & S_IFMT) == S_IFDIR)
#define S_ISBLK(mode)  (((mode) & S_IFMT) == S_IFBLK)
#define S_ISREG(mode)  (((mode) & S_IFMT) == S_IFREG)
#define S_ISLNK(mode)  (((mode) & S_IFMT) == S_IFLNK)

int stat(const char *path, struct stat *status);
int lstat(const char *path, struct stat *status);
int fstat(int descriptor, struct stat *status);
int mkdir(const char *path, mode_t mode);
int chmod(const char *path, mode_t mode);
mode_t umask(mode_t mask);
