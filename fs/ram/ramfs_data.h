/* Files in memory: their inodes and their contents. */
#pragma once

#include "fs/file.h"
#include "fs/vfs/inode.h"
#include "mm/memory_object.h"
#include "mm/pool.h"

#define RAMFS_DIRECT 8u	 /* pages found without a table */
#define RAMFS_TARGET 48u /* bytes of a symbolic link's target that need no page */

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
	struct list in_all; /* inodes, of all file systems in memory */
	union {
		struct {
			struct ramfs_entry *first, **end;
			struct ramfs_inode *parent;
			uint32_t positions; /* given out */
		} directory;
		struct {
			void *direct[RAMFS_DIRECT];
			void *tables; /* of pages; for large files, of tables of pages */
			struct memory_object memory; /* what areas show of it */
		} file;
		/* Of a symbolic link, without a NUL. One that does not fit is in the first page of
		 * `file`, as ext4's. */
		char target[RAMFS_TARGET];
	};
};

static inline struct ramfs_inode *ramfs_inode(struct inode *inode)
{
	return (struct ramfs_inode *)inode;
}

/* What all ramfs together hold, so that a leak shows: pools count what was taken from them. */
extern struct pool ramfs_inodes, ramfs_entries;

extern struct ramfs_counts {
	uint32_t pages;	      /* of file contents, and the tables that find them */
	uint32_t pages_limit; /* -ENOSPC beyond: half of what was free at the start */
} ramfs_counts;

/* What an open file of the file system in memory can do. */
extern const struct file_ops ramfs_file_ops;

/* An inode without a name, with one reference; NULL without memory. */
struct ramfs_inode *ramfs_make_inode(uint32_t mode, uint32_t filesystem);

/* From lesson 6 on (fs/memory) the pages of files are counted by those who use them, and go with
 * the last: these take and drop a reference. Without them nobody sleeps who uses a page, and it is
 * freed at once. */
void ramfs_page_hold(void *page) OPTIONAL;
void ramfs_page_release(void *page) OPTIONAL;

/* What areas show of a file: struct file_ops's memory. */
struct memory_object *ramfs_memory(struct file *file) OPTIONAL;

/* The page of a file, or of a long link, made where there was a hole. NULL without memory. */
void *ramfs_make_page(struct ramfs_inode *file, uint32_t index);

/* The pages from number `index` on that one table has, NULL for a hole; *count of them. NULL: no
 * table. */
void *const *ramfs_find_pages(struct ramfs_inode *file, uint32_t index, uint32_t *count);

/* Frees the contents from byte `size` on, and makes that the size. */
int ramfs_truncate(struct inode *inode, uint64_t size);
