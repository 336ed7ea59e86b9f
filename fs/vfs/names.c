/*
 * Names of what is there: links, removing, renaming. Opening and making is in fs/vfs/vfs.c.
 *
 * An inode and its names are two things. A name is an entry of a directory; the inode is freed with
 * its last name and its last reference:
 *
 *	link /a, /b		one inode with two names
 *	remove /a		it has one name, /b
 *	rename /b to /c		what had the name /c before has lost it
 *	exchange /c, /d		two inodes, each with the other's name
 *
 * Each call is a walk to the directory (path_do), checks, and the operation of the file system. If
 * several things are wrong the first check decides which errno the program gets, so their order is
 * Linux's (rename(2), unlink(2), rmdir(2)). Tasks only; all of it may sleep.
 */
#include "fs/vfs/names.h"

#include "fs/vfs/mounts.h"
#include "fs/vfs/path.h"
#include "fs/vfs/vfs.h"

#define DEPTH_MAX 65536u /* of directories in each other */

/* The target is a text that nobody looks up now: it may lead nowhere. */
static int make_symlink(struct path *path, void *target)
{
	const struct inode_ops *ops = path->directory->ops;

	return vfs_check_new(path, S_IFLNK)
		   ?: ops->symlink ? ops->symlink(path->directory, &path->last, target)
				   : -EPERM;
}

/* symlink(2): the target is not looked at. -EEXIST, -ENOENT, -EROFS, -EPERM. */
int vfs_symlink(struct inode *start, const char *text, const char *target)
{
	return *target ? path_do(start, text, PATH_NAME, make_symlink, (char *)target) : -ENOENT;
}

/* A directory has one name only, else there would be circles, and ".." would be two directories. */
static int make_link(struct path *path, void *context)
{
	struct inode *inode = context;
	int error = vfs_check_new(path, inode->mode);

	if (error)
		return error;
	if (inode->filesystem != path->directory->filesystem)
		return -EXDEV;
	if (inode_is(inode, S_IFDIR) || !path->directory->ops->link || mount_check_change(inode))
		return -EPERM;
	return path->directory->ops->link(path->directory, &path->last, inode);
}

/* link(2): -EXDEV for an inode of another file system. */
int vfs_link(struct inode *start, const char *text, struct inode *inode)
{
	return path_do(start, text, PATH_NAME, make_link, inode);
}

/* May a directory lose the name of an inode? */
static int check_loss(const struct inode *directory, const struct inode *inode)
{
	return mount_check_change(directory) ?: mount_check_change(inode);
}

/* Is it a directory entry, of the right kind, that may be removed? */
static int check_remove(const struct path *path, bool is_directory)
{
	if (!path->inode)
		return -ENOENT;
	if (path_is_wrong_kind(path) || (is_directory && !inode_is(path->inode, S_IFDIR)))
		return -ENOTDIR;
	if (!is_directory && inode_is(path->inode, S_IFDIR))
		return -EISDIR;
	if (!path_is_entry(path))
		return name_is(&path->last, "..")  ? -ENOTEMPTY
		       : name_is(&path->last, ".") ? -EINVAL
						   : -EBUSY;
	if (path->inode->covers)
		return -EBUSY;
	return path->directory->ops->remove ? check_loss(path->directory, path->inode) : -EPERM;
}

static int remove_resolved(struct path *path, void *is_directory)
{
	return check_remove(path, *(bool *)is_directory)
		   ?: path->directory->ops->remove(path->directory, &path->last, path->inode);
}

/* unlink(2), or rmdir(2). */
int vfs_remove(struct inode *start, const char *text, bool directory)
{
	return path_do(start, text, PATH_NAME, remove_resolved, &directory);
}

/* Is `directory` the inode, or anywhere below it? Above a damaged directory there may be a circle.
 */
static bool is_below_inode(struct inode *directory, const struct inode *inode)
{
	struct inode *parent;
	uint32_t left = DEPTH_MAX;

	inode_hold(directory);
	while (directory != inode && left-- > 0 && path_parent(directory, &parent) == 0) {
		bool at_root = parent == directory;

		inode_put(directory);
		directory = parent;
		if (at_root)
			break;
	}
	inode_put(directory);
	return directory == inode;
}

/* The new name may be another inode's, if the kinds fit or the two change names. */
static int check_replace(const struct inode *inode, const struct path *to, uint32_t flags)
{
	bool is_directory = inode_is(inode, S_IFDIR);

	if (!to->inode)
		return 0;
	if (to->inode->covers)
		return -EBUSY;
	if (flags & RENAME_EXCHANGE || is_directory == inode_is(to->inode, S_IFDIR))
		return 0;
	return is_directory ? -ENOTDIR : -EISDIR;
}

/* What can never have another name, then what is not there, then kinds, and at last a directory
 * that would be below itself. Nothing has changed yet. */
static int check_rename(const struct path *from, const struct path *to, uint32_t flags)
{
	/* Must be a directory if the new name ends with a slash: what gets it, or has had it. */
	const struct inode *named = flags & RENAME_EXCHANGE ? to->inode : from->inode;

	if (from->directory->filesystem != to->directory->filesystem)
		return -EXDEV;
	if (!path_is_entry(from))
		return -EBUSY;
	if (!path_is_entry(to))
		return flags & RENAME_NOREPLACE ? -EEXIST : -EBUSY;
	if (!from->inode || (!to->inode && flags & RENAME_EXCHANGE))
		return -ENOENT;
	if (from->inode->covers)
		return -EBUSY;
	if (to->inode && flags & RENAME_NOREPLACE)
		return -EEXIST;
	if (to->directory->links == 0)
		return -ENOENT;
	if (path_is_wrong_kind(from) || (to->slashes && !inode_is(named, S_IFDIR)))
		return -ENOTDIR;
	if (inode_is(from->inode, S_IFDIR) && is_below_inode(to->directory, from->inode))
		return -EINVAL;
	if (to->inode && is_below_inode(from->directory, to->inode))
		return flags & RENAME_EXCHANGE ? -EINVAL : -ENOTEMPTY;
	if (!from->directory->ops->rename)
		return -EPERM;
	return mount_check_write(from->directory) ?: check_replace(from->inode, to, flags);
}

/* Who loses a name must allow that: the old directory, and the new one if the name is in use. */
static int rename_resolved(struct path *from, struct path *to, uint32_t flags)
{
	int error = check_rename(from, to, flags);

	if (error || from->inode == to->inode) /* two names of one file: nothing to be done */
		return error;
	error = check_loss(from->directory, from->inode)
		    ?: to->inode ? check_loss(to->directory, to->inode)
				 : mount_check_write(to->directory);
	if (error)
		return error;
	if (flags & RENAME_EXCHANGE)
		return from->directory->ops->exchange(from->directory, &from->last, from->inode,
						      to->directory, &to->last, to->inode);
	return from->directory->ops->rename(from->directory, &from->last, from->inode,
					    to->directory, &to->last, to->inode);
}

/* Of two walks: when the answer of one is not true any more, both are done again. */
int vfs_rename(struct inode *start, const char *text, struct inode *new_start, const char *new_text,
	       uint32_t flags)
{
	struct path from, to;
	int error;

	do {
		error = path_resolve(&from, start, text, PATH_NAME);
		if (error)
			return error;
		error = path_resolve(&to, new_start, new_text, PATH_NAME);
		if (!error) {
			error = rename_resolved(&from, &to, flags);
			path_release(&to);
		}
		path_release(&from);
	} while (error == -ESTALE);
	return error;
}
