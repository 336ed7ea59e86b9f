/*
 * What programs do with paths. A path that is relative begins at the directory `start`.
 *
 * Functions return 0 (or a count) or a negated errno: those of path_resolve, and what Linux gives.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fs/file.h"
#include "fs/inode.h"

/* flags are open's; mode has been cut by the umask. */
int vfs_open(struct inode *start, const char *path, uint32_t flags, uint32_t mode,
	     struct file **file);

/* Makes a directory, device, pipe or regular file, as the type in mode says. */
int vfs_make(struct inode *start, const char *path, uint32_t mode, uint32_t device);

int vfs_symlink(struct inode *start, const char *path, const char *target);
int vfs_link(struct inode *start, const char *path, struct inode *inode);

/* Removes a directory, or (false) anything else. */
int vfs_remove(struct inode *start, const char *path, bool directory);

int vfs_rename(struct inode *start, const char *path, struct inode *new_start,
	       const char *new_path);

/* -EISDIR, -EINVAL for what is no regular file. */
int vfs_truncate(struct inode *inode, uint64_t size);

/* Writes a directory's path from the root, NUL-terminated. Returns its length with the NUL, -ERANGE
 * when size is too small, or -ENOENT when it has been removed. */
int vfs_directory_path(struct inode *directory, char *path, uint32_t size);

/* The same for an open file; for one without a name a text in its place. size is at least 64. */
int vfs_file_path(const struct file *file, char *path, uint32_t size);

/* Shows a file system's root, of which it takes over the reference, instead of the directory at
 * path; at "/" when there is no root yet. The texts must live as long as the kernel. */
int vfs_mount(const char *source, const char *type, const char *path, struct inode *root);

struct mount {
	const char *source, *type, *path;
	struct inode *root;
};

/* Mount number index, or NULL behind the last. */
const struct mount *vfs_mount_at(uint32_t index);
