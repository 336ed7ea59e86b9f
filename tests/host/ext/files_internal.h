/* What the files of tests/host/ext/files.h share. */
#pragma once

#include "fs/ext/ext.h"

/* What the library does not have yet is NULL: the operation gives -ENOSYS. */
#pragma weak ext_find
#pragma weak ext_create
#pragma weak ext_link
#pragma weak ext_remove
#pragma weak ext_release
#pragma weak ext_rename
#pragma weak ext_inode_write
#pragma weak ext_truncate
#pragma weak ext_write
#pragma weak ext_allocate
#pragma weak ext_punch
#pragma weak ext_commit
#pragma weak ext_attribute_set

/* An inode in use: there is one copy of it. */
struct used_inode {
	struct ext_inode inode;
	unsigned open; /* it is not released while somebody has it open */
	struct used_inode *next;
};

struct used_inode *inode_add(const struct ext_inode *inode);
int inode_use(uint32_t number, struct ext_inode **out);

/* After a link went: frees it if that was the last one and nobody has it open. */
int inode_release(struct ext_inode *inode);
int inode_open(struct ext_inode *inode);
int inode_close_all(void);

/* Finds what the path names; with `name`, only its directory, and the last component. */
int path_walk(const char *path, struct ext_inode **out, struct ext_name *name);
