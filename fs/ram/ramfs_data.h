/* Contents of files in memory. */
#pragma once

#include <stdint.h>

#include "fs/file.h"
#include "fs/vfs/inode.h"

/* What all ramfs together hold, so that a leak shows. */
struct ramfs_statistics {
	uint32_t inodes;
	uint32_t entries;     /* names in directories */
	uint32_t pages;	      /* of file contents, and the tables that find them */
	uint32_t pages_limit; /* -ENOSPC beyond: half of what was free at the start */
};

extern struct ramfs_statistics ramfs_counts;

/* What an open file of the file system in memory can do. */
extern const struct file_ops ramfs_file_ops;

/* Frees the contents from byte `size` on, and makes that the size. */
int ramfs_truncate(struct inode *inode, uint64_t size);
