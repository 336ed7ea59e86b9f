/*
 * Operations on paths: opening existing files, and making new ones. A path that is relative begins
 * at the directory `start`.
 *
 * Functions return 0 or a negated errno: those of path_resolve, and what Linux gives.
 */
#pragma once

#include "fs/files.h"
#include "fs/vfs/inode.h"
#include "kernel/abi/file.h"

struct path;

/* Where relative paths of these files' owner begin. */
struct inode *vfs_working_directory(const struct files *files);

/* Makes a directory the working directory. -ENOTDIR, -ENFILE. */
int vfs_enter(struct files *files, struct inode *directory);

/* Opens an inode with its own operations, and calls their open. -ENXIO if it has none, -ETXTBSY for
 * a running program that is to be written. */
int vfs_open_inode(struct inode *inode, uint32_t flags, struct file **file);

/* Gives back what a file of an inode holds: struct file's forget. */
void vfs_forget_file(struct file *file);

/* A file for an inode, which is a place and nothing else: it can be neither read nor written.
 * directory, where the inode was found, may be NULL. Takes references of both. NULL without memory.
 */
struct file *vfs_open_place(struct inode *inode, struct inode *directory, uint32_t flags);

/* Opens nothing but a place, for O_PATH. */
int vfs_open_path(struct inode *start, const char *text, uint32_t flags,
		  struct file **file) OPTIONAL;

/* The operations of the inode of a device or a pipe: open gives the file those of the device of the
 * inode's number, or of pipes. -ENXIO without such a device. */
extern const struct file_ops special_file_ops;

/* Opens the pipe of file->inode, a named one or not, and gives the file its operations. Sleeps
 * until a named pipe has both sides, unless the flags say otherwise. -ENOMEM, -ENXIO, -EINTR. */
int pipe_open(struct file *file) OPTIONAL;

/* What an open directory does when it is read: -EISDIR. */
int vfs_read_directory(struct file *file, struct buffer *to, uint64_t offset);

/* How many bytes an inode's open file has: struct file_ops's size. */
uint64_t vfs_file_size(const struct file *file);

/* flags are open's; mode has been cut by the umask. *file gets a reference. */
int vfs_open(struct inode *start, const char *path, uint32_t flags, uint32_t mode,
	     struct file **file);

/* Opens a program to be run: a regular file that somebody may execute, or -EACCES. Until the file
 * is released nobody can open it to write, which is -ETXTBSY here as well as there. */
int vfs_open_program(struct inode *start, const char *path, struct file **file);

/* Makes a directory, device, pipe or regular file, as the type in mode says. */
int vfs_make(struct inode *start, const char *path, uint32_t mode, uint32_t device);

/* How many bytes the current process may write into a file from this offset on; 0 after it has been
 * told by a signal that it may not. */
uint64_t vfs_room(uint64_t offset) OPTIONAL;

/* The same for an open file, which without O_LARGEFILE does not reach 2 GiB. */
static inline uint64_t vfs_room_of(const struct file *file, uint64_t offset)
{
	uint64_t most = file->flags & O_LARGEFILE ? INT64_MAX : INT32_MAX;
	uint64_t left = offset < most ? most - offset : 0;
	uint64_t room = vfs_room ? vfs_room(offset) : UINT64_MAX;

	return room < left ? room : left;
}

/* -EISDIR, -EINVAL unless it is a regular file, -ETXTBSY for a running program, -EFBIG. */
int vfs_truncate(struct inode *inode, uint64_t size);

/* May an inode of this mode get the name that a path has led to? The name must be new (-EEXIST),
 * and its directory there (-ENOENT). */
int vfs_check_new(const struct path *path, uint32_t mode);
