/* Mounts beyond the root. */
#pragma once

#include <stdint.h>

#include "fs/vfs/inode.h"

struct mount {
	const char *source, *type, *path;
	struct inode *root;
};

/* Shows a file system's root, of which it takes over the reference, instead of the directory at
 * path. The texts must live as long as the kernel. Returns 0 or a negated errno. */
int vfs_mount(const char *source, const char *type, const char *path, struct inode *root);

/* Mount number index, or NULL after the last. Number 0 is the root. */
const struct mount *vfs_mount_at(uint32_t index);
