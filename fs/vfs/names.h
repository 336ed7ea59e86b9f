/*
 * Names beyond opening and making: links, removing, renaming; and from an inode back to its path.
 * A path that is relative begins at the directory `start`.
 *
 * Functions return 0 (or a count) or a negated errno: those of path_resolve, and what Linux gives.
 */
#pragma once

#include "fs/file.h"
#include "fs/vfs/inode.h"

int vfs_symlink(struct inode *start, const char *path, const char *target);
int vfs_link(struct inode *start, const char *path, struct inode *inode);

/* Removes a directory, or (false) anything else. */
int vfs_remove(struct inode *start, const char *path, bool directory);

/* Flags of renameat2(2): nothing may have the new name, or the two change names. */
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE	 (1 << 1)

int vfs_rename(struct inode *start, const char *path, struct inode *new_start, const char *new_path,
	       uint32_t flags);

/* Writes a directory's path from the root, NUL-terminated. Returns its length with the NUL, -ERANGE
 * when size is too small, or -ENOENT when it has been removed. */
int vfs_directory_path(struct inode *directory, char *path, uint32_t size);

/* The same for an open file; for one without a name a text in its place. size is at least 64. */
int vfs_file_path(struct file *file, char *path, uint32_t size);
