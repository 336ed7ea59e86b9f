/* Reading directories. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/dirent.h"

/* As Linux's getdents64 has it. */
struct dirent {
	ino_t d_ino;
	off_t d_off;
	unsigned short d_reclen;
	unsigned char d_type;
	char d_name[];
};

typedef struct directory DIR;

DIR *opendir(const char *path);
/* NULL at the end. The entry holds until the next call. */
struct dirent *readdir(DIR *directory);
int closedir(DIR *directory);
