/* What the parts of ramfs share: inodes and names (fs/ram/ramfs.c), contents (fs/ram/ramfs_data.c),
 * and whoever adds operations at start-up. */
#pragma once

#include "fs/file.h"
#include "fs/vfs/inode.h"

#define RAMFS_DIRECT 8u /* pages found without a table */

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
			void *tables; /* of pages; for large files, of tables of pages */
		} file;
		char *target; /* of a symbolic link */
	};
};

static inline struct ramfs_inode *ramfs_inode(struct inode *inode)
{
	return (struct ramfs_inode *)inode;
}

/* Not const: operations that are missing here may be put in at start-up. */
extern struct inode_ops ramfs_ops;

/* A new inode and a new entry, which nobody finds yet, and back; NULL without memory. */
struct ramfs_inode *ramfs_make_inode(uint32_t mode, uint32_t filesystem);
void ramfs_free_inode(struct ramfs_inode *inode);
struct ramfs_entry *ramfs_make_entry(const struct name *name);
void ramfs_free_entry(struct ramfs_entry *entry);

/* Where the pointer to the entry is, or (with NULL there) the end of the list. */
struct ramfs_entry **ramfs_find_entry(struct ramfs_inode *directory, const struct name *name);

/* Makes an entry the last of its directory, for an inode whose links already count it. */
void ramfs_add_entry(struct ramfs_inode *directory, struct ramfs_entry *entry,
		     struct ramfs_inode *inode);
