/* Calls with paths that only Linux's programs make: those that end in "at", and those that change
 * names.
 */
#include "fs/file.h"
#include "fs/files.h"
#include "fs/path_page.h"
#include "fs/vfs/path.h"
#include "fs/vfs/vfs.h"
#include "kernel/lib/errno.h"
#include "fs/vfs/names.h"
#include "kernel/linux/files/calls.h"
#include "kernel/process/process.h"
#include "kernel/process/file_calls.h"
#include "kernel/syscall/syscall.h"
#include "mm/user_copy.h"

#define TO_LINK	 (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) /* not to what it leads to */
#define AT_FLAGS (AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC)

/* ---- places ---- */

/* A program's path, and the directory where it begins if it is relative: a reference, since another
 * task of the program may close its descriptor, or change the working directory. */
struct place {
	struct inode *start;
	char *path; /* a page */
};

static int find_start(struct place *place, uint32_t directory)
{
	const struct files *files = current->process->files;
	bool is_here = directory == HERE || *place->path == '/';
	const struct file *file = is_here ? NULL : files_get(files, directory);

	if (!is_here && !file)
		return -EBADF;
	if (!is_here && !inode_is(file->inode, S_IFDIR) && *place->path)
		return -ENOTDIR;
	place->start = inode_hold(is_here ? vfs_working_directory(files) : file->inode);
	return 0;
}

static void place_put(struct place *place)
{
	path_page_free(place->path);
	inode_put(place->start);
}

/* Fetches a path. directory is a descriptor or AT_FDCWD. -EFAULT, -ENAMETOOLONG, -EBADF, -ENOTDIR,
 * -ENOMEM; otherwise place_put gives it back. */
static int place_get(struct place *place, uint32_t directory, uint32_t address)
{
	int error = path_from_user(address, &place->path);

	if (error)
		return error;
	error = find_start(place, directory);
	if (error)
		path_page_free(place->path);
	return error;
}

int inode_at(uint32_t directory, uint32_t address, uint32_t flags, struct inode **inode)
{
	enum path_end end = flags & AT_SYMLINK_NOFOLLOW ? PATH_STAY : PATH_FOLLOW;
	struct place at;
	int error = flags & ~AT_FLAGS ? -EINVAL : place_get(&at, directory, address);

	if (error)
		return error;
	if (!*at.path && flags & AT_EMPTY_PATH)
		*inode = inode_hold(at.start);
	else
		error = path_find(at.start, at.path, end, inode);
	place_put(&at);
	return error;
}

int call_at(uint32_t directory, uint32_t address, uint32_t flags, inode_call *call, uint32_t first,
	    uint32_t second)
{
	struct inode *inode;
	int result = inode_at(directory, address, flags, &inode);

	if (result)
		return result;
	result = call(inode, first, second);
	inode_put(inode);
	return result;
}

int call_file(const struct file *file, inode_call *call, uint32_t first, uint32_t second)
{
	return file ? call(file->inode, first, second) : -EBADF;
}

/* ---- opening ---- */

/* The only flags that are valid together with O_PATH. */
#define PLACE_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int make_place(const struct path *path, uint32_t flags, struct file **file)
{
	if (!path->inode)
		return -ENOENT;
	if (path_is_wrong_kind(path) || (flags & O_DIRECTORY && !inode_is(path->inode, S_IFDIR)))
		return -ENOTDIR;
	*file = vfs_open_place(path->inode, path->directory, flags);
	return *file ? 0 : -ENFILE;
}

/* It can be neither read nor written. */
int vfs_open_path(struct inode *start, const char *text, uint32_t flags, struct file **file)
{
	struct path path;
	int error = path_resolve(&path, start, text, flags & O_NOFOLLOW ? PATH_STAY : PATH_FOLLOW);

	if (error)
		return error;
	error = make_place(&path, flags & PLACE_FLAGS, file);
	path_release(&path);
	return error;
}

/* As sys_open, from another directory. */
static int open_at(uint32_t directory, uint32_t address, uint32_t flags, uint32_t mode)
{
	struct files *files = current->process->files;
	struct place at;
	struct file *file;
	int result = place_get(&at, directory, address);

	if (result)
		return result;
	result = files_add(files, NULL, 0, false);
	if (result >= 0)
		result = vfs_open(at.start, at.path, flags, mode & ~files->umask, &file);
	place_put(&at);
	return result < 0 ? result : descriptor_add(file, flags);
}

CALL(sys_openat, open_at(frame->ebx, frame->ecx, frame->edx, frame->esi))
CALL(sys_creat, open_at(HERE, frame->ebx, O_CREAT | O_WRONLY | O_TRUNC, frame->ecx))

/* ---- making and removing ---- */

static int make_at(uint32_t directory, uint32_t address, uint32_t mode, uint32_t device)
{
	struct place at;
	int error = place_get(&at, directory, address);

	if (error)
		return error;
	error = vfs_make(at.start, at.path, mode & ~current->process->files->umask, device);
	place_put(&at);
	return error;
}

static int make_directory_at(uint32_t directory, uint32_t address, uint32_t mode)
{
	return make_at(directory, address, S_IFDIR | (mode & (S_ALL - S_ISUID - S_ISGID)), 0);
}

/* No type means a regular file. */
static int make_node_at(uint32_t directory, uint32_t address, uint32_t mode, uint32_t device)
{
	uint32_t type = mode & S_IFMT ? mode & S_IFMT : S_IFREG;

	if (type == S_IFDIR)
		return -EPERM;
	if (type != S_IFREG && type != S_IFCHR && type != S_IFBLK && type != S_IFIFO &&
	    type != S_IFSOCK)
		return -EINVAL;
	return make_at(directory, address, type | (mode & S_ALL), device);
}

static int remove_at(uint32_t directory, uint32_t address, uint32_t flags)
{
	struct place at;
	int error = flags & ~AT_REMOVEDIR ? -EINVAL : place_get(&at, directory, address);

	if (error)
		return error;
	error = vfs_remove(at.start, at.path, flags & AT_REMOVEDIR);
	place_put(&at);
	return error;
}

CALL(sys_mkdir, make_directory_at(HERE, frame->ebx, frame->ecx))
CALL(sys_mkdirat, make_directory_at(frame->ebx, frame->ecx, frame->edx))
CALL(sys_mknod, make_node_at(HERE, frame->ebx, frame->ecx, frame->edx))
CALL(sys_mknodat, make_node_at(frame->ebx, frame->ecx, frame->edx, frame->esi))
CALL(sys_unlink, remove_at(HERE, frame->ebx, 0))
CALL(sys_unlinkat, remove_at(frame->ebx, frame->ecx, frame->edx))
CALL(sys_rmdir, remove_at(HERE, frame->ebx, AT_REMOVEDIR))

/* ---- links and names ---- */

static int link_at(uint32_t directory, uint32_t address, uint32_t new_directory,
		   uint32_t new_address, uint32_t flags)
{
	struct inode *inode;
	struct place to;
	uint32_t follow = flags & AT_SYMLINK_FOLLOW;
	int error = inode_at(directory, address,
			     follow ? flags & ~follow : flags | AT_SYMLINK_NOFOLLOW, &inode);

	if (error)
		return error;
	error = place_get(&to, new_directory, new_address);
	if (!error) {
		error = vfs_link(to.start, to.path, inode);
		place_put(&to);
	}
	inode_put(inode);
	return error;
}

static int symlink_at(uint32_t target, uint32_t directory, uint32_t address)
{
	struct place from, at;
	int error = place_get(&from, HERE, target);

	if (error)
		return error;
	error = place_get(&at, directory, address);
	if (!error) {
		error = vfs_symlink(at.start, at.path, from.path);
		place_put(&at);
	}
	place_put(&from);
	return error;
}

static int rename_at(uint32_t directory, uint32_t address, uint32_t new_directory,
		     uint32_t new_address, uint32_t flags)
{
	struct place from, to;
	bool is_known = flags <= RENAME_EXCHANGE; /* each by itself */
	int error = is_known ? place_get(&from, directory, address) : -EINVAL;

	if (error)
		return error;
	error = place_get(&to, new_directory, new_address);
	if (!error) {
		error = vfs_rename(from.start, from.path, to.start, to.path, flags);
		place_put(&to);
	}
	place_put(&from);
	return error;
}

/* Copies a symbolic link's target, without a NUL, to a user address. */
static int give_target(struct inode *inode, uint32_t to, uint32_t size)
{
	char *target;

	if (!inode_is(inode, S_IFLNK))
		return -EINVAL;
	target = path_page();
	if (!target)
		return -ENOMEM;
	int length = inode->ops->read_link(inode, target, size < PATH_MAX ? size : PATH_MAX);

	if (length > 0 && copy_to_user(to, target, length))
		length = -EFAULT;
	path_page_free(target);
	return length;
}

CALL(sys_link, link_at(HERE, frame->ebx, HERE, frame->ecx, 0))
CALL(sys_linkat, link_at(frame->ebx, frame->ecx, frame->edx, frame->esi, frame->edi))
CALL(sys_symlink, symlink_at(frame->ebx, HERE, frame->ecx))
CALL(sys_symlinkat, symlink_at(frame->ebx, frame->ecx, frame->edx))
CALL(sys_rename, rename_at(HERE, frame->ebx, HERE, frame->ecx, 0))
CALL(sys_renameat, rename_at(frame->ebx, frame->ecx, frame->edx, frame->esi, 0))
CALL(sys_renameat2, rename_at(frame->ebx, frame->ecx, frame->edx, frame->esi, frame->edi))

/* An empty path leads to the link that a descriptor is a place of, or to nothing. */
static int read_link_at(uint32_t directory, uint32_t address, uint32_t to, uint32_t size)
{
	char first;

	if ((int32_t)size <= 0)
		return -EINVAL;
	int result = call_at(directory, address, TO_LINK, give_target, to, size);
	bool is_empty = result == -EINVAL && !copy_from_user(&first, address, 1) && !first;

	return is_empty ? -ENOENT : result;
}

CALL(sys_readlink, read_link_at(HERE, frame->ebx, frame->ecx, frame->edx))
CALL(sys_readlinkat, read_link_at(frame->ebx, frame->ecx, frame->edx, frame->esi))

/* ---- the working directory ---- */

static int enter(struct inode *inode, uint32_t unused, uint32_t unused_too)
{
	return vfs_enter(current->process->files, inode);
}

CALL(sys_chdir, call_at(HERE, frame->ebx, 0, enter, 0, 0))
FILE_CALL(sys_fchdir, call_file(file, enter, 0, 0))

static int sys_getcwd(struct trap_frame *frame)
{
	char *path = path_page();

	if (!path)
		return -ENOMEM;
	uint32_t size = frame->ecx < PATH_MAX ? frame->ecx : PATH_MAX;
	int length = vfs_directory_path(vfs_working_directory(current->process->files), path, size);

	if (length > 0 && copy_to_user(frame->ebx, path, length))
		length = -EFAULT;
	path_page_free(path);
	return length;
}

static int sys_umask(struct trap_frame *frame)
{
	uint32_t before = current->process->files->umask;

	current->process->files->umask = frame->ebx & 0777;
	return before;
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 8, "creat", "so", sys_creat },
	{ 9, "link", "ss", sys_link },
	{ 10, "unlink", "s", sys_unlink },
	{ 12, "chdir", "s", sys_chdir },
	{ 14, "mknod", "sox", sys_mknod },
	{ 38, "rename", "ss", sys_rename },
	{ 39, "mkdir", "so", sys_mkdir },
	{ 40, "rmdir", "s", sys_rmdir },
	{ 60, "umask", "o", sys_umask },
	{ 83, "symlink", "ss", sys_symlink },
	{ 85, "readlink", "spd", sys_readlink },
	{ 133, "fchdir", "f", sys_fchdir },
	{ 183, "getcwd", "pd", sys_getcwd },
	{ 295, "openat", "asoo", sys_openat },
	{ 296, "mkdirat", "aso", sys_mkdirat },
	{ 297, "mknodat", "asox", sys_mknodat },
	{ 301, "unlinkat", "asx", sys_unlinkat },
	{ 302, "renameat", "asas", sys_renameat },
	{ 303, "linkat", "asasx", sys_linkat },
	{ 304, "symlinkat", "sas", sys_symlinkat },
	{ 305, "readlinkat", "aspd", sys_readlinkat },
	{ 353, "renameat2", "asasx", sys_renameat2 },
};
