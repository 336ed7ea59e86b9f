/* What the two parts of ramfs share: directories (fs/ram/ramfs.c) and contents
 * (fs/ram/ramfs_data.c). */
#pragma once

#include "fs/file.h"
#include "fs/inode.h"

#define RAMFS_DIRECT 8u	 /* pages found without a table */
#define RAMFS_TARGET 64u /* a symbolic link's target below this lies in the inode */

struct ramfs_entry {
	struct ramfs_entry *next;
	struct ramfs_inode *inode; /* counted in its links, not in its references */
	uint32_t position;	   /* among the directory's entries; only grows along the list */
	uint32_t hash;
	uint8_t length;
	char text[];
};

struct ramfs_inode {
	struct inode inode; /* first: the two have one address */
	union {
		struct {
			struct ramfs_entry *first, **end;
			struct ramfs_inode *parent;
			uint32_t positions; /* given out */
		} directory;
		struct {
			void *direct[RAMFS_DIRECT];
			void *tables; /* of tables of pages */
		} file;
		char target[RAMFS_TARGET];
	};
};

static inline struct ramfs_inode *ramfs_inode(struct inode *inode)
{
	return (struct ramfs_inode *)inode;
}

extern const struct file_ops ramfs_file_ops;
extern struct ramfs_statistics ramfs_counts;

/* Frees the contents from byte `size` on, and makes that the size. */
int ramfs_truncate(struct inode *inode, uint64_t size);

/* Writes from the kernel's memory, all or nothing. */
int ramfs_store(struct ramfs_inode *file, const void *from, uint32_t length);

/* Copies from the first page of the contents. */
void ramfs_load(struct ramfs_inode *file, void *to, uint32_t length);
