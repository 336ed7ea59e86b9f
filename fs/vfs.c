/*
 * Opening and making by path. path_resolve finds the directory that the last name belongs to, and
 * what has the name now; what follows from the two depends on what open is asked for:
 *
 *	name is there	O_CREAT	O_EXCL	open
 *	no		no		-ENOENT
 *	no		yes		makes a regular file and opens it
 *	yes		any	no	opens what is there; with O_TRUNC empties it first
 *	yes		yes	yes	-EEXIST
 *
 * Between "it is not there" and "so make it" nothing may sleep, or two tasks could make the same
 * name: as long as a file system's lookup does not sleep, no lock is needed.
 *
 * Called by system calls and by whoever fills the root at start-up, with a task that may sleep.
 */
#include "fs/vfs.h"

#include <stddef.h>

#include "fs/path.h"
#include "kernel/lib/errno.h"

/* For every kind of file, open or not; the file system does the rest. */
int vfs_truncate(struct inode *inode, uint64_t size)
{
	if (inode_is(inode, S_IFDIR))
		return -EISDIR;
	if (!inode_is(inode, S_IFREG) || !inode->ops->truncate)
		return -EINVAL;
	if (inode->programs > 0)
		return -ETXTBSY;
	return inode->ops->truncate(inode, size);
}

/* ---- opening ---- */

/* Makes what is not there, for O_CREAT. */
static int create_file(struct path *path, uint32_t flags, uint32_t mode)
{
	struct inode *directory = path->directory;

	if (!(flags & O_CREAT) || directory->links == 0)
		return -ENOENT;
	if (!directory->ops->create)
		return -EACCES;
	return directory->ops->create(directory, &path->last, S_IFREG | (mode & S_ALL), 0,
				      &path->inode);
}

/* May what is there be opened like this? */
static int check_open(const struct inode *inode, uint32_t flags)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;

	if ((flags & O_CREAT) && (flags & O_EXCL))
		return -EEXIST;
	if (inode_is(inode, S_IFLNK)) /* O_NOFOLLOW, or it would have been followed */
		return -ELOOP;
	if (inode_is(inode, S_IFDIR))
		return writes || flags & O_CREAT ? -EISDIR : 0;
	return flags & O_DIRECTORY ? -ENOTDIR : 0;
}

/* Opens what the path has led to, or makes it first. O_TRUNC empties only what was there. */
static int open_resolved(struct path *path, uint32_t flags, uint32_t mode, struct file **file)
{
	bool is_new = !path->inode;

	if (path->slashes && flags & O_CREAT && path_is_entry(path))
		return -EISDIR;
	if (path_is_wrong_kind(path))
		return -ENOTDIR;
	int error = is_new ? create_file(path, flags, mode) : check_open(path->inode, flags);

	if (!error && !is_new && flags & O_TRUNC && inode_is(path->inode, S_IFREG))
		error = vfs_truncate(path->inode, 0);
	if (!error)
		error = file_open_inode(path->inode, flags, file);
	if (!error)
		(*file)->directory = inode_hold(path->directory);
	return error;
}

/* The flags decide how the walk treats a symbolic link at the end. */
int vfs_open(struct inode *start, const char *text, uint32_t flags, uint32_t mode,
	     struct file **file)
{
	bool exclusive = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
	struct path path;
	int error = path_resolve(&path, start, text,
				 exclusive	      ? PATH_NAME
				 : flags & O_NOFOLLOW ? PATH_STAY
				 : flags & O_CREAT    ? PATH_CREATE
						      : PATH_FOLLOW);

	if (error)
		return error;
	error = open_resolved(&path, flags, mode, file);
	path_release(&path);
	return error;
}

/* Counted as a program as long as the file is open: the process keeps it open while it runs. */
int vfs_open_program(struct inode *start, const char *path, struct file **file)
{
	int error = vfs_open(start, path, O_RDONLY, 0, file);

	if (error)
		return error;
	if ((*file)->inode->writers > 0) {
		file_release(*file);
		return -ETXTBSY;
	}
	(*file)->is_program = true;
	(*file)->inode->programs++;
	return 0;
}

/* ---- making ---- */

/* For what is about to be created: the directory must exist, the name must not. */
int vfs_resolve_new(struct path *path, struct inode *start, const char *text, bool directory)
{
	int error = path_resolve(path, start, text, PATH_NAME);

	if (error)
		return error;
	if (path->inode)
		error = -EEXIST;
	else if ((path->slashes && !directory) || path->directory->links == 0)
		error = -ENOENT;
	if (error)
		path_release(path);
	return error;
}

/* The file system's create does not ask whether the name is taken: that has been seen here. */
int vfs_make(struct inode *start, const char *text, uint32_t mode, uint32_t device)
{
	struct path path;
	int error = vfs_resolve_new(&path, start, text, (mode & S_IFMT) == S_IFDIR);

	if (error)
		return error;
	const struct inode_ops *ops = path.directory->ops;

	error = ops->create ? ops->create(path.directory, &path.last, mode, device, &path.inode)
			    : -EPERM;
	path_release(&path);
	return error;
}
