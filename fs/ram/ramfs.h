/* A file system in memory: the root, until there is a disk. */
#pragma once

#include <stdint.h>

#include "fs/inode.h"

/* What all ramfs together hold, so that a leak shows. */
struct ramfs_statistics {
	uint32_t inodes;
	uint32_t entries;     /* names in directories */
	uint32_t pages;	      /* of file contents, and the tables that find them */
	uint32_t pages_limit; /* -ENOSPC beyond: half of what was free at the start */
};

/* A new, empty file system. Returns its root, with a reference; NULL without memory. */
struct inode *ramfs_create_root(void);

struct ramfs_statistics ramfs_statistics(void);
