/*
 * Mounts: which file system is mounted at which directory.
 * fs/vfs/mounting.h changes that.
 */
#pragma once

#include "fs/vfs/filesystem.h"
#include "fs/vfs/inode.h"

#define MOUNT_TEXT 128u /* bytes of each text, with its NUL */

struct mount {
	const struct filesystem *type; /* NULL: not in use */
	struct inode *root;	       /* a reference; root->covers is where it is mounted */
	struct mount_options options;
	char source[MOUNT_TEXT], path[MOUNT_TEXT], text[MOUNT_TEXT];
};

/* Mount number index, or NULL after the last. Number 0 is the root. */
const struct mount *vfs_mount_at(uint32_t index);

/* The mount that an inode is in; NULL for one that is in none. */
struct mount *mount_of(const struct inode *inode);

/* As its options say, or because its file system is damaged. */
bool mount_is_read_only(const struct mount *mount);

/* May something be added to the inode? 0; -EROFS in a mount that is read-only, -EPERM if it is
 * immutable. And may it be changed? -EPERM, too, if it is append-only. */
int mount_check_write(const struct inode *inode);
int mount_check_change(const struct inode *inode);

/* ---- for fs/vfs/mounting.c ---- */

#define MOUNTS 16u

extern struct mount mounts[MOUNTS];

/* The first one, which was there before anything could be mounted. */
struct mount *mount_of_root(void);
