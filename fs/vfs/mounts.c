/*
 * The list of mounts.
 *
 *	/mnt		->mounted ------> the root of a file system on /dev/hdb
 *	(a reference)	<------ ->covers	(a reference, the mount's)
 *
 * A walk along a path that comes to /mnt goes on in the mounted root (fs/vfs/path.c), and ".." of
 * that root is that of the directory that it covers. An inode knows its file system by a number,
 * and so its mount is found. fs/vfs/mounting.c changes the list.
 */
#include "fs/vfs/mounts.h"

#include "fs/vfs/path.h"
#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"

struct mount mounts[MOUNTS];

/* The root was there before anything could be mounted. */
struct mount *mount_of_root(void)
{
	static const struct filesystem unknown = { .type = "rootfs" }; /* until ramfs has started */

	if (!mounts[0].type) {
		mounts[0] = (struct mount){ .type = &unknown, .root = path_root() };
		snprintk(mounts[0].source, MOUNT_TEXT, "none");
		snprintk(mounts[0].path, MOUNT_TEXT, "/");
	}
	if (mounts[0].type == &unknown && filesystem_find("ramfs"))
		mounts[0].type = filesystem_find("ramfs");
	return &mounts[0];
}

/* Mounts are shown in the order of their places; those that are not ready, or gone, are not. */
const struct mount *vfs_mount_at(uint32_t index)
{
	mount_of_root();
	for (uint32_t i = 0; i < MOUNTS; i++)
		if (mounts[i].type && mounts[i].root && index-- == 0)
			return &mounts[i];
	return NULL;
}

struct mount *mount_of(const struct inode *inode)
{
	mount_of_root();
	for (uint32_t i = 0; i < MOUNTS; i++)
		if (mounts[i].root && mounts[i].root->filesystem == inode->filesystem)
			return &mounts[i];
	return NULL;
}

bool mount_is_read_only(const struct mount *mount)
{
	return mount->options.read_only ||
	       (mount->type->is_read_only && mount->type->is_read_only(mount->root));
}

int mount_check_write(const struct inode *inode)
{
	const struct mount *mount = mount_of(inode);

	return mount && mount_is_read_only(mount) ? -EROFS : inode->is_immutable ? -EPERM : 0;
}

int mount_check_change(const struct inode *inode)
{
	int error = mount_check_write(inode);

	return error || !inode->is_append_only ? error : -EPERM;
}
