/*
 * What programs do with paths: open what is there, and make what is not. A path that is relative
 * begins at the directory `start`.
 *
 * Functions return 0 or a negated errno: those of path_resolve, and what Linux gives.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fs/file.h"
#include "fs/inode.h"

struct path;

/* flags are open's; mode has been cut by the umask. *file gets a reference. */
int vfs_open(struct inode *start, const char *path, uint32_t flags, uint32_t mode,
	     struct file **file);

/* Opens a program to be run: until the file is released nobody can open it to write, which is
 * -ETXTBSY here as well as there. */
int vfs_open_program(struct inode *start, const char *path, struct file **file);

/* Makes a directory, device, pipe or regular file, as the type in mode says. */
int vfs_make(struct inode *start, const char *path, uint32_t mode, uint32_t device);

/* -EISDIR, -EINVAL for what is no regular file, -ETXTBSY for a running program. */
int vfs_truncate(struct inode *inode, uint64_t size);

/* Finds the place of a name that is not there yet: -EEXIST when it is. path_release is due after
 * success. */
int vfs_resolve_new(struct path *path, struct inode *start, const char *text, bool directory);
