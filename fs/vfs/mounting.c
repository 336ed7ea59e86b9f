/*
 * Mounting and unmounting: how the list of mounts changes (fs/vfs/mounts.h).
 *
 * File systems sleep while they are mounted and unmounted. Meanwhile the mount has its place in the
 * list, with a type and no root, so nobody gets the place and nobody finds the mount:
 *
 *	reserve_mount		a place: it has a type now
 *	mount_root_inode	the file system reads its superblock, and gives its root
 *	attach_mount		the directory's ->mounted and the root's ->covers: walks go there
 *
 * An unmount is the same backwards. It detaches first, so that no walk enters what is about to go;
 * a file system that is still in use says -EBUSY, and is attached again.
 *
 * References: the mount has one of its root and one of the directory that it covers, from
 * attach_mount on.
 */
#include "fs/vfs/mounting.h"

#include "fs/vfs/mounts.h"
#include "fs/vfs/names.h"
#include "fs/vfs/path.h"
#include "fs/vfs/vfs.h"
#include "kernel/report/printk.h"

/* From the beginning of vfs_shut_down on: files that are open to be written do not hold anything
 * up. */
bool vfs_is_shutting_down;

/* The text is copied: the caller's is gone when the call ends. */
static void set_options(struct mount *mount, const struct mount_options *options)
{
	mount->options = *options;
	snprintk(mount->text, MOUNT_TEXT, "%s", options->text ? options->text : "");
	mount->options.text = mount->text;
}

/* A place in the list, which nobody else gets until its type is NULL again. NULL: all are taken. */
static struct mount *reserve_mount(const struct filesystem *type, const char *source)
{
	struct mount *mount = mount_of_root();

	while (mount < mounts + MOUNTS && mount->type)
		mount++;
	if (mount == mounts + MOUNTS)
		return NULL;
	*mount = (struct mount){ .type = type };
	snprintk(mount->source, MOUNT_TEXT, "%s", source);
	return mount;
}

/* Asks the file system for its root, with a reference that is the mount's. -ENOTBLK for a source
 * that is not a device, where it needs one; and what the file system returns. */
static int mount_root_inode(struct mount *mount, struct inode *start,
			    const struct mount_options *options, struct inode **root)
{
	struct inode *device = NULL;
	int error = 0;

	if (mount->type->needs_device)
		error = path_find(start, mount->source, PATH_FOLLOW, &device);
	if (device && !inode_is(device, S_IFBLK))
		error = -ENOTBLK;
	if (!error)
		error = mount->type->mount(mount->type, device, options, root);
	inode_put(device);
	if (!error)
		set_options(mount, options);
	return error;
}

/* Shows a root instead of a directory: both references are the mount's from now on. What another
 * task has mounted there meanwhile is covered in its turn. */
static void attach_mount(struct mount *mount, struct inode *covered, struct inode *root)
{
	while (covered->mounted) {
		struct inode *above = inode_hold(covered->mounted);

		inode_put(covered);
		covered = above;
	}
	covered->mounted = root;
	root->covers = covered;
	mount->root = root;
}

/* The directory to be covered; its path goes into the mount. */
static int find_covered(struct mount *mount, struct inode *start, const char *path,
			struct inode **covered)
{
	int error = path_find(start, path, PATH_FOLLOW, covered);

	if (error)
		return error;
	error = inode_is(*covered, S_IFDIR) ? vfs_directory_path(*covered, mount->path, MOUNT_TEXT)
					    : -ENOTDIR;
	if (error < 0)
		inode_put(*covered);
	return error < 0 ? error : 0;
}

/* What fails gives back what the steps before it have taken. */
int vfs_mount(struct inode *start, const char *source, const char *type, const char *path,
	      const struct mount_options *options)
{
	const struct filesystem *found = filesystem_find(type);
	struct mount *mount = found ? reserve_mount(found, source) : NULL;
	struct inode *covered, *root;

	if (!mount)
		return found ? -ENOMEM : -ENODEV;
	int error = find_covered(mount, start, path, &covered);

	if (!error && (error = mount_root_inode(mount, start, options, &root)) != 0)
		inode_put(covered);
	if (error)
		mount->type = NULL;
	else
		attach_mount(mount, covered, root);
	return error;
}

/* The mount whose root is at a path. -EINVAL: the path leads into a mount, but not to its root. */
static int find_mount(struct inode *start, const char *path, struct mount **mount)
{
	struct inode *root;
	int error = path_find(start, path, PATH_FOLLOW, &root);

	if (error)
		return error;
	*mount = mount_of(root);
	if (!*mount || (*mount)->root != root)
		error = -EINVAL;
	inode_put(root);
	return error;
}

/* Is there an option of this name in a text? Its value does not matter. */
static bool has_option(const char *text, const char *wanted)
{
	char name[32];
	const char *value;

	while (mount_option_next(&text, name, sizeof(name), &value))
		if (strcmp(name, wanted) == 0)
			return true;
	return false;
}

/* The options of a mount, and those of `more`: of two with one name the later. For /proc/mounts,
 * which tells all that is in force. */
static void merge_options(char *merged, const char *before, const char *more)
{
	char name[32], both[2 * MOUNT_TEXT];
	const char *value, *text = both;
	uint32_t length = 0;

	snprintk(both, sizeof(both), "%s,%s", before, more);
	*merged = '\0';
	while (mount_option_next(&text, name, sizeof(name), &value)) {
		if (has_option(text, name))
			continue;
		snprintk(merged + length, MOUNT_TEXT - length, "%s%s%s%s", length ? "," : "", name,
			 *value ? "=" : "", value);
		length = strlen(merged);
	}
}

/* The file system is asked first, and may refuse. An option that is not named stays as it was. */
static int change_options(struct mount *mount, const struct mount_options *options)
{
	struct mount_options changed = *options;
	char text[MOUNT_TEXT];
	int error = mount->type->remount ? mount->type->remount(mount->root, options) : 0;

	if (error)
		return error;
	merge_options(text, mount->text, options->text ? options->text : "");
	changed.text = text;
	set_options(mount, &changed);
	return 0;
}

/* mount(2), MS_REMOUNT: the path must be a mount's own. */
int vfs_remount(struct inode *start, const char *path, const struct mount_options *options)
{
	struct mount *mount;

	return find_mount(start, path, &mount) ?: change_options(mount, options);
}

/* Is anything mounted on a directory of this mount? Then it must stay, or that could not be
 * reached. */
static bool has_mounts(const struct mount *mount)
{
	for (uint32_t i = 1; i < MOUNTS; i++)
		if (mounts[i].root && mounts[i].root->covers->filesystem == mount->root->filesystem)
			return true;
	return false;
}

/* While the file system is asked, nobody finds its root: that may sleep. Another error than -EBUSY
 * is one of the last writes: the mount is gone all the same. */
static int unmount_one(struct mount *mount)
{
	struct inode *root = mount->root, *covered = root->covers;

	if (mount == &mounts[0] || has_mounts(mount))
		return -EBUSY;
	mount->root = NULL;
	covered->mounted = NULL;
	root->covers = NULL;
	int error = mount->type->unmount ? mount->type->unmount(root) : -EBUSY;

	if (error == -EBUSY) {
		attach_mount(mount, covered, root);
		return error;
	}
	inode_put(covered);
	mount->type = NULL;
	return error;
}

/* umount(2). -EINVAL for a directory inside a mount, -EBUSY. */
int vfs_unmount(struct inode *start, const char *path)
{
	struct mount *mount;

	return find_mount(start, path, &mount) ?: unmount_one(mount);
}

/* ---- the root, and the end ---- */

/* Shows what is at `path` of the old root there in the new one, too: a mount moves, and a directory
 * is mounted from now on. */
static void take_along(struct inode *old_root, struct inode *new_root, const char *path)
{
	struct inode *from, *to;
	struct mount *mount;

	vfs_make(new_root, path, S_IFDIR | 0755, 0); /* mostly it is there */
	if (path_find(old_root, path, PATH_FOLLOW, &from) != 0)
		return;
	if (path_find(new_root, path, PATH_FOLLOW, &to) != 0) {
		printk("files: the root has no %s\n", path);
		inode_put(from);
		return;
	}
	mount = from->covers ? mount_of(from) : reserve_mount(mounts[0].type, "none");
	if (from->covers) {
		from->covers->mounted = NULL;
		inode_put(from->covers);
		inode_put(from); /* the mount has its own */
	}
	snprintk(mount->path, MOUNT_TEXT, "/%s", path);
	attach_mount(mount, to, from);
}

/* The new root covers nothing, and has the place of the first one. What is open of the old root, or
 * mounted in it elsewhere, stays in use and is not found by any path. */
int vfs_change_root(const char *source, const char *type, const struct mount_options *options)
{
	struct mount mount = { .type = filesystem_find(type) };
	struct inode *old_root = path_root(), *root;

	mount_of_root();
	if (!mount.type)
		return -ENODEV;
	snprintk(mount.source, MOUNT_TEXT, "%s", source);
	snprintk(mount.path, MOUNT_TEXT, "/");
	int error = mount_root_inode(&mount, old_root, options, &root);

	if (error)
		return error;
	take_along(old_root, root, "dev");
	take_along(old_root, root, "proc");
	take_along(old_root, root, "sys");
	mount.root = root;
	mounts[0] = mount;
	mounts[0].options.text = mounts[0].text;
	path_set_root(root);
	return 0;
}

/* All of them, although one fails; the first error is returned. A mount that comes or goes
 * meanwhile has its own sync. */
int vfs_sync(void)
{
	int error = 0;

	if (vfs_sync_first)
		vfs_sync_first();
	for (uint32_t i = 0; i < MOUNTS; i++) {
		const struct mount *mount = &mounts[i];
		int failed =
		    mount->root && mount->type->sync ? mount->type->sync(mount->root, NULL) : 0;

		error = error ?: failed;
	}
	return error;
}

/* The latest first, as it may be mounted on an earlier one. What is in use becomes read-only
 * instead: its journal is empty then, and the next mount has nothing to replay. */
void vfs_shut_down(void)
{
	struct mount_options options;

	vfs_is_shutting_down = true;
	for (uint32_t i = MOUNTS; i-- > 0;) {
		struct mount *mount = &mounts[i];

		if (!mount->root || !mount->type->sync || (i > 0 && unmount_one(mount) != -EBUSY))
			continue;
		options = mount->options;
		options.read_only = true;
		options.text = "";
		change_options(mount, &options);
	}
	vfs_sync();
}
