/*
 * System calls with paths: opening, looking at what a name stands for, changing and listing
 * directories.
 *
 * A path is copied into a page of the kernel before anything looks at it (path_from_user). The walk
 * then reads only the copy, so a program that changes the text meanwhile changes nothing (time of
 * check to time of use). Relative paths begin at the process's working directory.
 *
 * stat64 and getdents64 write structures of Linux's layout (kernel/abi); a bad address is found
 * when they are copied, and is -EFAULT. An inode is held while a call works with it, because
 * another task may remove its name meanwhile.
 *
 * All run for the current task and may sleep where the file system does.
 */
#include "fs/files.h"
#include "fs/path.h"
#include "fs/vfs.h"
#include "kernel/abi/dirent.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/process/process.h"
#include "kernel/process/file_calls.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/user_time.h"
#include "mm/page_alloc.h"
#include "mm/user_copy.h"

/* The page is the caller's only after success. */
int path_from_user(uint32_t address, char **path)
{
	*path = path_page();
	if (!*path)
		return -ENOMEM;
	int length = string_from_user(*path, address, PATH_MAX);

	if (length < 0)
		path_page_free(*path);
	return length < 0 ? length : 0;
}

/* Does something with the inode at a path of the program's, in the working directory. */
static int call_with(uint32_t address, enum path_end end, inode_call *call, uint32_t argument)
{
	struct inode *inode;
	char *path;
	int result = path_from_user(address, &path);

	if (result)
		return result;
	result = path_find(current->process->files->directory, path, end, &inode);
	path_page_free(path);
	if (result)
		return result;
	result = call(inode, argument, 0);
	inode_put(inode);
	return result;
}

/* ---- opening ---- */

/* The umask takes permissions away from what is made; without memory for a descriptor the file is
 * closed again. */
int descriptor_open(struct inode *start, const char *path, uint32_t flags, uint32_t mode)
{
	struct file *file;
	int error = vfs_open(start, path, flags, mode & ~current->process->files->umask, &file);

	return error ? error : descriptor_add(file, flags);
}

/* Two things can fail after the file was made: a new file stays then, as in Linux. */
static int sys_open(struct trap_frame *frame)
{
	char *path;
	int result = path_from_user(frame->ebx, &path);

	if (result)
		return result;
	result = descriptor_open(current->process->files->directory, path, frame->ecx, frame->edx);
	path_page_free(path);
	return result;
}

/* ---- what a name stands for ---- */

/* Of a device number the lower byte is the minor one; the other fields are as the inode has them.
 */
int give_stat64(struct inode *inode, uint32_t to, uint32_t unused)
{
	struct linux_stat64 stat = {
		.filesystem = inode->filesystem,
		.number_low = inode->number,
		.mode = inode->mode,
		.links = inode->links,
		.owner = inode->owner,
		.group = inode->group,
		.device = inode->device,
		.size = inode->size,
		.block_size = PAGE_SIZE,
		.blocks = inode->blocks,
		.number = inode->number,
		.accessed = timespec_of(inode->accessed),
		.modified = timespec_of(inode->modified),
		.changed = timespec_of(inode->changed),
	};

	return give(to, &stat, sizeof(stat));
}

/* Works with any descriptor, and needs no path. */
static int sys_fstat64(struct trap_frame *frame)
{
	struct file *file = descriptor_file(frame->ebx);

	return file ? give_stat64(file->inode, frame->ecx, 0) : -EBADF;
}

/* They differ only in a last symbolic link: stat64 follows it. */
CALL(sys_stat64, call_with(frame->ebx, PATH_FOLLOW, give_stat64, frame->ecx))
CALL(sys_lstat64, call_with(frame->ebx, PATH_STAY, give_stat64, frame->ecx))

/* ---- directories ---- */

/* Relative paths begin there from now on; after fork each process has its own. */
int inode_enter(struct inode *inode)
{
	if (!inode_is(inode, S_IFDIR))
		return -ENOTDIR;
	files_set_directory(current->process->files, inode);
	return 0;
}

/* As an inode_call, without arguments. */
static int enter(struct inode *inode, uint32_t unused, uint32_t unused_too)
{
	return inode_enter(inode);
}

CALL(sys_chdir, call_with(frame->ebx, PATH_FOLLOW, enter, 0))

/* Where getdents64 puts entries. */
struct entries {
	struct buffer buffer;
	int error; /* why the next entry was not taken */
};

/* Puts one entry, padded to a multiple of 8 bytes, after the others. False: no more. */
static bool put_entry(void *context, const struct directory_entry *entry)
{
	struct entries *entries = context;
	struct {
		struct linux_dirent64 head;
		char name[NAME_MAX + 8];
	} __attribute__((packed)) record;
	uint32_t length = (sizeof(record.head) + entry->name.length + 1 + 7) & ~7u;

	if (length > entries->buffer.length) {
		entries->error = -EINVAL;
		return false;
	}
	memset(&record, 0, length);
	record.head =
	    (struct linux_dirent64){ entry->number, entry->next, length, entry->mode >> 12 };
	memcpy(record.name, entry->name.text, entry->name.length);
	if (copy_to_user(entries->buffer.address, &record, length)) {
		entries->error = -EFAULT;
		return false;
	}
	entries->buffer.address += length;
	entries->buffer.length -= length;
	return true;
}

/* As many entries as fit, from the file's offset on. An error counts only if there is none. */
static int sys_getdents64(struct trap_frame *frame)
{
	struct file *file = descriptor_readable(frame->ebx);
	struct entries entries = { buffer_of_user(frame->ecx, frame->edx), 0 };

	if (!file)
		return -EBADF;
	if (!inode_is(file->inode, S_IFDIR))
		return -ENOTDIR;
	if (file->inode->links == 0)
		return -ENOENT;
	int error = file->inode->ops->iterate(file->inode, &file->offset, put_entry, &entries);
	uint32_t done = frame->edx - entries.buffer.length;

	if (done > 0)
		return done;
	return error ? error : entries.error;
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 5, "open", "soo", sys_open },	       { 12, "chdir", "s", sys_chdir },
	{ 195, "stat64", "sp", sys_stat64 },   { 196, "lstat64", "sp", sys_lstat64 },
	{ 197, "fstat64", "dp", sys_fstat64 }, { 220, "getdents64", "dpd", sys_getdents64 },
};
