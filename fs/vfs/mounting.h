/*
 * Mounting and unmounting.
 *
 * Functions return 0 or a negated errno, and may sleep. Paths that are relative begin at `start`.
 */
#pragma once

#include "fs/vfs/filesystem.h"
#include "fs/vfs/inode.h"
#include "kernel/lib/optional.h"

/* Mounts `source`, a block device's path, or any text for a type that needs none, at a directory.
 * -ENODEV for an unknown type, -ENOTBLK, -ENOTDIR, -ENOMEM when there are too many mounts, or what
 * path_find and the file system say. */
int vfs_mount(struct inode *start, const char *source, const char *type, const char *path,
	      const struct mount_options *options);

/* Other options for the mount at `path`. -EINVAL if nothing is mounted there; -EBUSY if it is to be
 * read-only and a file is open to be written. */
int vfs_remount(struct inode *start, const char *path, const struct mount_options *options);

/* -EINVAL if nothing is mounted there; -EBUSY for the root, and while it is in use. */
int vfs_unmount(struct inode *start, const char *path);

/* Makes a mounted file system the root. What is mounted on /dev, /proc and /sys now, or is there in
 * the old root, is found there again. */
int vfs_change_root(const char *source, const char *type, const struct mount_options *options);

/* Writes everything back: all mounts, and first what `vfs_sync_first` is for. */
int vfs_sync(void);
void vfs_sync_first(void) OPTIONAL;

/* At the end of the machine: all mounts but the root are unmounted, and that is made read-only, as
 * far as they are not in use; then vfs_sync. */
void vfs_shut_down(void);
extern bool vfs_is_shutting_down; /* files that are open do not count any more */
