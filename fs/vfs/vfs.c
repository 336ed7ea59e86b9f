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
 * Between "it is not there" and "so make it" another task may make the same name, where a file
 * system's operations sleep. Such a file system looks once more, under its own lock, and says
 * -ESTALE if the walk's answer is not true any more: then the walk begins again.
 *
 * Called by system calls and, at start-up, by the code that fills the root; the task may sleep.
 */
#include "fs/vfs/vfs.h"

#include "fs/devices.h"
#include "fs/vfs/locks.h"
#include "fs/vfs/mounts.h"
#include "fs/vfs/path.h"

/* For every kind of file, open or not; the file system does the rest. */
int vfs_truncate(struct inode *inode, uint64_t size)
{
	if (inode_is(inode, S_IFDIR))
		return -EISDIR;
	if (!inode_is(inode, S_IFREG) || !inode->ops->truncate)
		return -EINVAL;
	if (inode->programs > 0)
		return -ETXTBSY;
	if (size > inode->size && vfs_room && vfs_room(size - 1) == 0)
		return -EFBIG;
	return mount_check_change(inode) ?: inode->ops->truncate(inode, size);
}

/* ---- open files of inodes ---- */

/* struct file_ops's size, for files whose inode knows it. */
uint64_t vfs_file_size(const struct file *file)
{
	return file->inode->size;
}

/* struct file_ops's read, for directories: getdents64 lists them. */
int vfs_read_directory(struct file *file, struct buffer *to, uint64_t offset)
{
	return -EISDIR;
}

/* inode->writers counts these, and inode->programs those that run: a running program cannot be
 * written. */
static bool is_writer(const struct file *file)
{
	return inode_is(file->inode, S_IFREG) && file_writable(file);
}

/* The last reference to an open file has gone: the opposite of vfs_open_inode. */
void vfs_forget_file(struct file *file)
{
	file->inode->writers -= is_writer(file);
	file->inode->programs -= file->is_program;
	if (file->inode->locks)
		locks_drop(file->inode, file);
	inode_put(file->directory);
	inode_put(file->inode);
}

/* Of a place; and of a file whose open has refused it, so that its release is not called. */
static const struct file_ops no_operations;

/* A file that is in no table yet. Its `forget` comes when the operations' open has agreed. */
static struct file *open_unchecked(struct inode *inode, const struct file_ops *ops, uint32_t flags)
{
	struct file *file = file_create(ops, NULL, flags);

	if (file)
		file->inode = inode_hold(inode);
	return file;
}

/* With no operations that work: O_PATH, and the working directory. */
struct file *vfs_open_place(struct inode *inode, struct inode *directory, uint32_t flags)
{
	struct file *file = open_unchecked(inode, &no_operations, flags | O_ACCMODE);

	if (!file)
		return NULL;
	file->directory = directory ? inode_hold(directory) : NULL;
	file->forget = vfs_forget_file;
	return file;
}

/* Counted as a writer only when open has agreed. */
int vfs_open_inode(struct inode *inode, uint32_t flags, struct file **file)
{
	if (!inode->file_ops)
		return -ENXIO;
	if (inode->programs > 0 && (flags & O_ACCMODE) != O_RDONLY)
		return -ETXTBSY;
	struct file *opened = open_unchecked(inode, inode->file_ops, flags);

	if (!opened)
		return -ENFILE;
	opened->flags |= flags & (O_EXCL | O_NOCTTY); /* for a device; no program sees them */
	int error = opened->ops->open ? opened->ops->open(opened) : 0;

	opened->flags &= ~(O_EXCL | O_NOCTTY);
	if (error) {
		opened->ops = &no_operations;
		file_release(opened);
		inode_put(inode);
		return error;
	}
	inode->writers += is_writer(opened);
	opened->appending = inode_is(inode, S_IFREG) ? &inode->appending : NULL;
	opened->forget = vfs_forget_file;
	if (flags & O_DIRECT && !inode_is(inode, S_IFREG) && !inode_is(inode, S_IFBLK)) {
		file_release(opened);
		return -EINVAL;
	}
	*file = opened;
	return 0;
}

/* Replaces the operations of the file by those of the pipe, or of the device, whose own open comes
 * after that. */
static int special_open(struct file *file)
{
	const struct inode *inode = file->inode;
	const struct device *device = device_next(NULL);

	if (inode_is(inode, S_IFIFO))
		return pipe_open ? pipe_open(file) : -ENXIO;
	while (device && (device->number != inode->device ||
			  inode_is(inode, S_IFBLK) != ((device->mode & S_IFMT) == S_IFBLK)))
		device = device_next(device);
	if (!device)
		return -ENXIO;
	file->ops = device->ops;
	return file->ops->open ? file->ops->open(file) : 0;
}

const struct file_ops special_file_ops = { .open = special_open };

/* ---- opening by path ---- */

/* Makes what is not there, for O_CREAT. */
static int create_missing(struct path *path, uint32_t flags, uint32_t mode)
{
	struct inode *directory = path->directory;

	if (!(flags & O_CREAT) || directory->links == 0)
		return -ENOENT;
	if (!directory->ops->create)
		return -EACCES;
	return mount_check_write(directory)
		   ?: directory->ops->create(directory, &path->last, S_IFREG | (mode & S_ALL), 0,
					     &path->inode);
}

/* May what is there be opened like this? */
static int check_open(const struct inode *inode, uint32_t flags)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;

	if ((flags & O_CREAT) && (flags & O_EXCL))
		return -EEXIST;
	if (inode_is(inode, S_IFDIR))
		return flags & O_UNNAMED ? -EOPNOTSUPP : writes || flags & O_CREAT ? -EISDIR : 0;
	if (flags & O_DIRECTORY)
		return -ENOTDIR;
	if (inode_is(inode, S_IFLNK)) /* O_NOFOLLOW, or it would have been followed */
		return -ELOOP;
	if (inode_is(inode, S_IFREG) && inode->size > INT32_MAX && !(flags & O_LARGEFILE))
		return -EOVERFLOW;
	if (!writes || !inode_is(inode, S_IFREG))
		return 0;
	return flags & O_APPEND ? mount_check_write(inode) : mount_check_change(inode);
}

/* What open is asked for; it goes through the walk (path_do) to open_resolved. */
struct open_request {
	uint32_t flags, mode;
	struct file **file;
};

/* Opens what the path has led to, or makes it first. O_TRUNC empties only what was there. */
static int open_resolved(struct path *path, void *context)
{
	const struct open_request *request = context;
	uint32_t flags = request->flags;
	bool is_new = !path->inode;

	if ((flags & (O_CREAT | O_EXCL)) == O_CREAT && path_is_planted(path) &&
	    !inode_is(path->inode, S_IFREG) && !inode_is(path->inode, S_IFIFO) &&
	    !inode_is(path->inode, S_IFDIR))
		return -EACCES; /* no device or socket that waits for who makes a file */
	if (path_is_wrong_kind(path))
		return -ENOTDIR;
	int error =
	    is_new ? create_missing(path, flags, request->mode) : check_open(path->inode, flags);

	if (!error && !is_new && flags & O_TRUNC && inode_is(path->inode, S_IFREG))
		error = vfs_truncate(path->inode, 0);
	if (!error)
		error = vfs_open_inode(path->inode, flags, request->file);
	if (!error)
		(*request->file)->directory = inode_hold(path->directory);
	return error;
}

/* Linux's flags: a program may set others, and F_GETFL does not show them. */
#define OPEN_FLAGS 037777703u

/* The flags decide how the walk treats a symbolic link at the end. */
int vfs_open(struct inode *start, const char *text, uint32_t flags, uint32_t mode,
	     struct file **file)
{
	bool exclusive = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
	enum path_end end = exclusive ? PATH_NAME : flags & O_NOFOLLOW ? PATH_STAY : PATH_FOLLOW;

	flags &= OPEN_FLAGS;
	if (flags & O_PATH && vfs_open_path)
		return vfs_open_path(start, text, flags, file);
	if ((flags & O_DIRECTORY && flags & O_CREAT) ||
	    (flags & O_UNNAMED && (!(flags & O_DIRECTORY) || (flags & O_ACCMODE) == O_RDONLY)))
		return -EINVAL;
	return path_do(start, text, flags & O_CREAT ? end | PATH_FILE : end, open_resolved,
		       &(struct open_request){ flags, mode, file });
}

/* Counted as a program as long as the file is open: the process keeps it open while it runs. */
int vfs_open_program(struct inode *start, const char *path, struct file **file)
{
	int error = vfs_open(start, path, O_RDONLY | O_LARGEFILE, 0, file);

	if (error)
		return error;
	const struct inode *inode = (*file)->inode;

	if (!inode_is(inode, S_IFREG) || !(inode->mode & S_IXALL))
		error = -EACCES;
	else if (inode->writers > 0)
		error = -ETXTBSY;
	if (error) {
		file_release(*file);
		return error;
	}
	(*file)->is_program = true;
	(*file)->inode->programs++;
	return 0;
}

/* ---- as a process asks for it ---- */

/* The root, until a process has gone somewhere else. No reference. */
struct inode *vfs_working_directory(const struct files *files)
{
	return files->directory ? files->directory->inode : path_root();
}

/* Kept as an open file, so that a process's files are all that fork copies. */
int vfs_enter(struct files *files, struct inode *directory)
{
	if (!inode_is(directory, S_IFDIR))
		return -ENOTDIR;
	struct file *file = vfs_open_place(directory, NULL, 0);

	if (!file)
		return -ENFILE;
	files_set(&files->directory, file);
	file_release(file);
	return 0;
}

/* ---- making ---- */

/* The file systems' operations do not ask whether the name is taken: that is seen here. */
int vfs_check_new(const struct path *path, uint32_t mode)
{
	if (path->inode)
		return -EEXIST;
	if ((path->slashes && (mode & S_IFMT) != S_IFDIR) || path->directory->links == 0)
		return -ENOENT;
	return mount_check_write(path->directory);
}

/* What is to be made: an inode of this type, with these permissions. */
struct make_request {
	uint32_t mode, device;
};

static int make_resolved(struct path *path, void *context)
{
	const struct make_request *request = context;
	const struct inode_ops *ops = path->directory->ops;

	return vfs_check_new(path, request->mode)
		   ?: ops->create ? ops->create(path->directory, &path->last, request->mode,
						request->device, &path->inode)
				  : -EPERM;
}

/* mkdir, mknod: -EEXIST, -ENOENT, -EROFS, -EPERM, and the file system's. */
int vfs_make(struct inode *start, const char *text, uint32_t mode, uint32_t device)
{
	return path_do(start, text, PATH_NAME, make_resolved,
		       &(struct make_request){ mode, device });
}
