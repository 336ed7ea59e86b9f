/* Mounts beyond the root, and the list of all of them. */
#include "fs/vfs/mounts.h"

#include <stddef.h>

#include "fs/vfs/path.h"
#include "kernel/lib/errno.h"

#define MOUNTS 8u

static struct mount mounts[MOUNTS];
static uint32_t mount_count;

/* The root was there before anything could be mounted. */
static void note_root(void)
{
	if (mount_count == 0)
		mounts[mount_count++] = (struct mount){ "none", "ramfs", "/", path_root() };
}

int vfs_mount(const char *source, const char *type, const char *path, struct inode *root)
{
	struct inode *covered;

	note_root();
	if (mount_count == MOUNTS)
		return -ENOMEM;
	int error = path_find(path_root(), path, PATH_FOLLOW, &covered);

	if (error)
		return error;
	if (!inode_is(covered, S_IFDIR)) {
		inode_put(covered);
		return -ENOTDIR;
	}
	covered->mounted = root; /* the reference to `covered` stays, as root->covers */
	root->covers = covered;
	mounts[mount_count++] = (struct mount){ source, type, path, root };
	return 0;
}

const struct mount *vfs_mount_at(uint32_t index)
{
	note_root();
	return index < mount_count ? &mounts[index] : NULL;
}
