/* A file system in memory: the root, until there is a disk. */
#pragma once

#include "fs/ram/ramfs_data.h"

/* A new, empty file system. Returns its root, with a reference; NULL without memory. */
struct inode *ramfs_create_root(void);

/* Frees a file system, with the one reference that its root has: struct filesystem's unmount.
 * -EBUSY while any other inode of it is in use. Does not sleep. */
int ramfs_unmount(struct inode *root);

/* Makes the files of the host's archive (fs/cpio.h) in the root. Directories that are missing on
 * the way are made (mode 0755). */
void initramfs_unpack(void);
