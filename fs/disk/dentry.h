/* Names of inodes that are in memory, to be found without their directory. Nothing here sleeps. */
#pragma once

#include "fs/vfs/inode.h"

#define DENTRY_NAME 31u /* bytes: of longer names there is no text */

/* A part of an inode. Zeroed, it is ready for use. */
struct dentry {
	struct dentry *chain; /* same hash */
	uint32_t filesystem;
	uint32_t parent; /* the directory's number; 0: there is none */
	uint32_t hash;
	uint8_t length;
	char text[DENTRY_NAME];
};

/* The inode that has the name; NULL: that is not known. */
struct dentry *dentry_find(const struct inode *directory, const struct name *name);

/* Whether that is the name, and the directory, by which an inode was found. */
bool dentry_is(const struct dentry *dentry, const struct inode *directory, const struct name *name);

/* The inode has been found, or made, by this name; and its name is about to change. */
void dentry_fill(struct dentry *dentry, const struct inode *directory, const struct name *name);
void dentry_set(struct dentry *dentry, const struct inode *directory, const struct name *name);
void dentry_forget(struct dentry *dentry);
