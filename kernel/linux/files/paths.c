/*
 * Calls with paths: openat's family, and those that make, remove and change names.
 *
 * Of most there are two: mkdirat(2) has a directory where a relative path begins, a descriptor or
 * AT_FDCWD; mkdir(2) is the same with AT_FDCWD (HERE). The functions here are for the first form.
 * They fetch the path, find where it begins (struct start), and call fs/vfs, which walks along it.
 *
 *	openat(7, "a/b", O_RDONLY)	start = { inode of descriptor 7, "a/b" }
 *	open("/a/b", O_RDONLY)		start = { the working directory, "/a/b" }; not used
 *
 * All run for the current task, and may sleep: where a page or the disk is waited for. path(7) has
 * the rules of walking, fs/vfs/path.h the errors.
 */
#include "fs/vfs/names.h"
#include "fs/vfs/path.h"
#include "fs/vfs/vfs.h"
#include "kernel/linux/files/calls.h"

#define LINK_ITSELF (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) /* not what it leads to */
#define AT_FLAGS    (AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC)

/* ---- where a path begins ---- */

/* A program's path, copied to a page, and the directory where it begins if it is relative: a
 * reference, since another task of the program may close its descriptor, or change the working
 * directory. Zeros: nothing is held. */
struct start {
	struct inode *directory;
	char *path;
};

static void start_release(struct start *start)
{
	if (start->path)
		path_page_free(start->path);
	inode_put(start->directory);
}

/* Fetches a path, and holds where it begins. `directory` is a descriptor or AT_FDCWD. Returns 0;
 * -EFAULT, -ENAMETOOLONG, -EBADF, -ENOTDIR or -ENOMEM. start_release also follows an error. */
static int start_from_user(struct start *start, uint32_t directory, uint32_t address)
{
	const struct files *files = current->process->files;
	const struct file *file;
	int error = path_from_user(address, &start->path);

	if (error)
		return error;
	if (directory == HERE || *start->path == '/') {
		start->directory = inode_hold(vfs_working_directory(files));
		return 0;
	}
	file = files_get(files, directory);
	if (!file)
		return -EBADF;
	if (!inode_is(file->inode, S_IFDIR) &&
	    *start->path) /* an empty path may mean the file itself */
		return -ENOTDIR;
	start->directory = inode_hold(file->inode);
	return 0;
}

int inode_at(uint32_t directory, uint32_t address, uint32_t flags, struct inode **inode)
{
	enum path_end end = flags & AT_SYMLINK_NOFOLLOW ? PATH_STAY : PATH_FOLLOW;
	struct start start CLEANUP(start_release) = {};
	int error = flags & ~AT_FLAGS ? -EINVAL : start_from_user(&start, directory, address);

	if (error || *start.path || !(flags & AT_EMPTY_PATH))
		return error ?: path_find(start.directory, start.path, end, inode);
	*inode = inode_hold(start.directory);
	return 0;
}

/* ---- opening ---- */

/* open(2): the only flags that are valid together with O_PATH. */
#define PATH_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* -ENOENT, -ENOTDIR, -ENFILE. The path stays the caller's. */
static int open_found_path(const struct path *path, uint32_t flags, struct file **file)
{
	if (!path->inode)
		return -ENOENT;
	if (path_is_wrong_kind(path) || (flags & O_DIRECTORY && !inode_is(path->inode, S_IFDIR)))
		return -ENOTDIR;
	*file = vfs_open_place(path->inode, path->directory, flags);
	return *file ? 0 : -ENFILE;
}

/* For fs/vfs. The file can be neither read nor written. */
int vfs_open_path(struct inode *start, const char *text, uint32_t flags, struct file **file)
{
	struct path path;
	int error = path_resolve(&path, start, text, flags & O_NOFOLLOW ? PATH_STAY : PATH_FOLLOW);

	if (error)
		return error;
	error = open_found_path(&path, flags & PATH_FLAGS, file);
	path_release(&path);
	return error;
}

/* As sys_open: without a descriptor that is free no new file is made. */
static int open_at(uint32_t directory, uint32_t address, uint32_t flags, uint32_t mode)
{
	struct files *files = current->process->files;
	struct start start CLEANUP(start_release) = {};
	struct file *file;
	int result = start_from_user(&start, directory, address);

	if (!result)
		result = files_add(files, NULL, 0, false);
	if (result >= 0)
		result = vfs_open(start.directory, start.path, flags, mode & ~files->umask, &file);
	return result < 0 ? result : descriptor_add(file, flags);
}

SYSCALL(295, sys_openat, "asoo", open_at(frame->ebx, frame->ecx, frame->edx, frame->esi))
SYSCALL(8, sys_creat, "so", open_at(HERE, frame->ebx, O_CREAT | O_WRONLY | O_TRUNC, frame->ecx))

/* ---- making and removing ---- */

/* Makes what the type in mode says. */
static int make_at(uint32_t directory, uint32_t address, uint32_t mode, uint32_t device)
{
	struct start start CLEANUP(start_release) = {};

	mode &= ~current->process->files->umask;
	return start_from_user(&start, directory, address)
		   ?: vfs_make(start.directory, start.path, mode, device);
}

/* Neither S_ISUID nor S_ISGID can be asked for; the parent's S_ISGID is inherited. */
static int make_directory_at(uint32_t directory, uint32_t address, uint32_t mode)
{
	return make_at(directory, address, S_IFDIR | (mode & (S_ALL - S_ISUID - S_ISGID)), 0);
}

/* mknod(2). No type means a regular file. */
static int make_node_at(uint32_t directory, uint32_t address, uint32_t mode, uint32_t device)
{
	uint32_t type = mode & S_IFMT ?: S_IFREG;

	if (type == S_IFDIR)
		return -EPERM;
	if (type != S_IFREG && type != S_IFCHR && type != S_IFBLK && type != S_IFIFO &&
	    type != S_IFSOCK)
		return -EINVAL;
	return make_at(directory, address, type | (mode & S_ALL), device);
}

/* unlink, or with AT_REMOVEDIR rmdir. */
static int remove_at(uint32_t directory, uint32_t address, uint32_t flags)
{
	struct start start CLEANUP(start_release) = {};

	if (flags & ~AT_REMOVEDIR)
		return -EINVAL;
	return start_from_user(&start, directory, address)
		   ?: vfs_remove(start.directory, start.path, flags & AT_REMOVEDIR);
}

SYSCALL(39, sys_mkdir, "so", make_directory_at(HERE, frame->ebx, frame->ecx))
SYSCALL(296, sys_mkdirat, "aso", make_directory_at(frame->ebx, frame->ecx, frame->edx))
SYSCALL(14, sys_mknod, "sox", make_node_at(HERE, frame->ebx, frame->ecx, frame->edx))
SYSCALL(297, sys_mknodat, "asox", make_node_at(frame->ebx, frame->ecx, frame->edx, frame->esi))
SYSCALL(10, sys_unlink, "s", remove_at(HERE, frame->ebx, 0))
SYSCALL(301, sys_unlinkat, "asx", remove_at(frame->ebx, frame->ecx, frame->edx))
SYSCALL(40, sys_rmdir, "s", remove_at(HERE, frame->ebx, AT_REMOVEDIR))

/* ---- links and names ---- */

/* A new name for an inode: of a symbolic link for the link, unless AT_SYMLINK_FOLLOW is set, the
 * opposite of the other calls' AT_SYMLINK_NOFOLLOW. */
static int link_at(uint32_t directory, uint32_t address, uint32_t new_directory,
		   uint32_t new_address, uint32_t flags)
{
	struct inode *inode CLEANUP(inode_release) = NULL;
	struct start to CLEANUP(start_release) = {};

	flags =
	    flags & AT_SYMLINK_FOLLOW ? flags & ~AT_SYMLINK_FOLLOW : flags | AT_SYMLINK_NOFOLLOW;
	return inode_at(directory, address, flags, &inode)
		   ?: start_from_user(&to, new_directory, new_address)
		   ?: vfs_link(to.directory, to.path, inode);
}

/* The target is text: where it leads, and whether it leads anywhere, is found when it is walked. */
static int symlink_at(uint32_t target, uint32_t directory, uint32_t address)
{
	struct start from CLEANUP(start_release) = {}, to CLEANUP(start_release) = {};

	return start_from_user(&from, HERE, target) ?: start_from_user(&to, directory, address)
		   ?: vfs_symlink(to.directory, to.path, from.path);
}

/* The flags of renameat2(2), each by itself. */
static int rename_at(uint32_t directory, uint32_t address, uint32_t new_directory,
		     uint32_t new_address, uint32_t flags)
{
	struct start from CLEANUP(start_release) = {}, to CLEANUP(start_release) = {};

	if (flags > RENAME_EXCHANGE)
		return -EINVAL;
	return start_from_user(&from, directory, address)
		   ?: start_from_user(&to, new_directory, new_address)
		   ?: vfs_rename(from.directory, from.path, to.directory, to.path, flags);
}

SYSCALL(9, sys_link, "ss", link_at(HERE, frame->ebx, HERE, frame->ecx, 0))
SYSCALL(303, sys_linkat, "asasx",
	link_at(frame->ebx, frame->ecx, frame->edx, frame->esi, frame->edi))
SYSCALL(83, sys_symlink, "ss", symlink_at(frame->ebx, HERE, frame->ecx))
SYSCALL(304, sys_symlinkat, "sas", symlink_at(frame->ebx, frame->ecx, frame->edx))
SYSCALL(38, sys_rename, "ss", rename_at(HERE, frame->ebx, HERE, frame->ecx, 0))
SYSCALL(302, sys_renameat, "asas", rename_at(frame->ebx, frame->ecx, frame->edx, frame->esi, 0))
SYSCALL(353, sys_renameat2, "asasx",
	rename_at(frame->ebx, frame->ecx, frame->edx, frame->esi, frame->edi))

/* readlink(2) of an inode: the target, cut to size, without a NUL. Returns its length. */
static int give_target(struct inode *inode, uint32_t to, uint32_t size)
{
	char *target CLEANUP(path_page_release) = NULL;

	if (!inode_is(inode, S_IFLNK))
		return -EINVAL;
	target = path_page();
	if (!target)
		return -ENOMEM;
	int length = inode->ops->read_link(inode, target, size < PATH_MAX ? size : PATH_MAX);

	return length > 0 && copy_to_user(to, target, length) ? -EFAULT : length;
}

/* An empty path leads to the link that a descriptor is open for (O_PATH), or to nothing. */
static int read_link_at(uint32_t directory, uint32_t address, uint32_t to, uint32_t size)
{
	struct inode *inode CLEANUP(inode_release) = NULL;
	char first;

	if ((int32_t)size <= 0)
		return -EINVAL;
	int result =
	    inode_at(directory, address, LINK_ITSELF, &inode) ?: give_target(inode, to, size);
	bool is_empty = result == -EINVAL && !copy_from_user(&first, address, 1) && !first;

	return is_empty ? -ENOENT : result;
}

SYSCALL(85, sys_readlink, "spd", read_link_at(HERE, frame->ebx, frame->ecx, frame->edx))
SYSCALL(305, sys_readlinkat, "aspd", read_link_at(frame->ebx, frame->ecx, frame->edx, frame->esi))

/* ---- the working directory, and the umask ---- */

SYSCALL_INODE(12, sys_chdir, "s", OF_PATH, vfs_enter(current->process->files, inode))
SYSCALL_FILE(133, sys_fchdir, "f", INODE_OF(file, vfs_enter(current->process->files, inode)))

/* Linux's call, not the library's getcwd(3): returns the length of the path with its NUL. */
SYSCALL_DEFINE(183, sys_getcwd, "pd")
{
	char *path CLEANUP(path_page_release) = path_page();

	if (!path)
		return -ENOMEM;
	uint32_t size = frame->ecx < PATH_MAX ? frame->ecx : PATH_MAX;
	int length = vfs_directory_path(vfs_working_directory(current->process->files), path, size);

	return length > 0 && copy_to_user(frame->ebx, path, length) ? -EFAULT : length;
}

SYSCALL_DEFINE(60, sys_umask, "o")
{
	uint32_t before = current->process->files->umask;

	current->process->files->umask = frame->ebx & 0777;
	return before;
}
