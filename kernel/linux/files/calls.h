/*
 * Shared by the calls for files. A call names a file in one of three ways, and all three lead to an
 * inode:
 *
 *	a path			SYSCALL_INODE		stat, chmod; those that end in "at"
 *	an open file		SYSCALL_OPEN ...	fchmod, fsync: kernel/linux/call.h
 *	either, or a link	SYSCALL_INODES		stat, lstat, fstat
 */
#pragma once

#include "fs/path_page.h"
#include "fs/vfs/anonymous.h"
#include "kernel/linux/call.h"
#include "kernel/process/file_calls.h"
#include "kernel/task/sched.h"
#include "mm/pool.h"

#define HERE ((uint32_t)AT_FDCWD) /* as a directory's descriptor: the working directory */

/* The inode at a path, with a reference; flags are AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, and those
 * that mean nothing here. -EINVAL for others. May sleep. */
int inode_at(uint32_t directory, uint32_t address, uint32_t flags, struct inode **inode);

/* The first arguments of inode_at. Of a call whose own first argument is a path: what that leads
 * to, and, of a symbolic link, the link itself; of one that has a directory before the path. */
#define OF_PATH		  HERE, frame->ebx, 0
#define OF_LINK		  HERE, frame->ebx, AT_SYMLINK_NOFOLLOW
#define OF_PATH_AT(flags) frame->ebx, frame->ecx, flags

/* Defines a call of the inode at a place (OF_PATH ...): its result, an expression of `inode` and of
 * the frame's registers, or inode_at's error. The inode is held until the call ends. */
#define SYSCALL_INODE(number, function, arguments, place, result)                                  \
	SYSCALL_DEFINE(number, function, arguments)                                                \
	{                                                                                          \
		struct inode *inode CLEANUP(inode_release) = NULL;                                 \
		int error = inode_at(place, &inode);                                               \
                                                                                                   \
		return error ? error : (result);                                                   \
	}

/* The same of an open file's inode, which the file holds: -EBADF for NULL. */
#define INODE_OF(open, result)                                                                     \
	({                                                                                         \
		struct inode *inode = (open) ? (open)->inode : NULL;                               \
		inode ? (result) : -EBADF;                                                         \
	})

/* Three calls of one operation: of what a path leads to, of a symbolic link itself (its name begins
 * with "l"), of an open file ("f"). `arguments` are the letters after the first; `open` says which
 * files: `file`, or file_opened(file), which refuses O_PATH. */
#define SYSCALL_INODES(number, of_link, of_file, name, arguments, open, result)                    \
	SYSCALL_INODE(number, sys_##name, "s" arguments, OF_PATH, result)                          \
	SYSCALL_INODE(of_link, sys_l##name, "s" arguments, OF_LINK, result)                        \
	SYSCALL_FILE(of_file, sys_f##name, "f" arguments, INODE_OF(open, result))

/* A file without a name, with zeroed private data from a pool, to which the file's release gives it
 * back. NULL without memory. */
struct file *file_of_pool(struct anonymous *kind, const struct file_ops *ops, struct pool *pool,
			  uint32_t flags);

/* Gives the program a descriptor of such a file, whose private data is a copy of *initial. The
 * flags that count are O_NONBLOCK and O_CLOEXEC. */
int descriptor_of_pool(struct anonymous *kind, const struct file_ops *ops, struct pool *pool,
		       const void *initial, uint32_t flags);

/* fcntl's commands of locks, F_GETLK to F_OFD_SETLKW, on an open file. May sleep. */
int lock_call(struct file *file, const struct trap_frame *frame);

#define FEW_VECTORS 8u /* need no page of their own, as Linux's UIO_FASTIOV */

/* A program's list of pieces of its memory: a copy, which was checked and stays as it was. */
struct vectors {
	struct linux_vector *list, few[FEW_VECTORS];
	uint32_t count, total; /* bytes */
};

/* If something is wrong with any piece, nothing is moved. A length is signed; the total is cut to
 * TRANSFER_MAX. Returns 0, -EINVAL, -EFAULT or -ENOMEM; vectors_release follows in any case. */
int vectors_from_user(struct vectors *vectors, uint32_t from, uint32_t count);
void vectors_release(struct vectors *vectors);

/* readv and writev of a file with these operations: all pieces are one message. Sockets, from
 * lesson 4 on. */
extern const struct file_ops socket_ops OPTIONAL;
int socket_move_vectors(struct file *file, const struct vectors *vectors, bool write) OPTIONAL;

/* The file, or NULL if it is not open for this. */
static inline struct file *file_to_read(struct file *file)
{
	return file && file_readable(file) ? file : NULL;
}

static inline struct file *file_to_write(struct file *file)
{
	return file && file_writable(file) ? file : NULL;
}

/* Kernel code of a program keeps the processor until it sleeps. A call that may move much gives it
 * up where a switch is due. */
static inline void share_processor(void)
{
	if (trap_return_work & WORK_SCHEDULE)
		yield();
}

/* For CLEANUP. */
static inline void path_page_release(char **page)
{
	if (*page)
		path_page_free(*page);
}

static inline void inode_release(struct inode **inode)
{
	inode_put(*inode);
}

/* Defines a call of an open file, as kernel/process/held_call.h does, with a second descriptor:
 * argument `at`, in that register. `other` is its file. */
#define FILES_CALL(name, at, descriptor, result)                                                   \
	static int name(struct trap_frame *frame)                                                  \
	{                                                                                          \
		struct file *file = file_hold(frame->ebx), *other = file_hold(frame->descriptor);  \
		int value = result;                                                                \
                                                                                                   \
		file_drop(other);                                                                  \
		file_drop(file);                                                                   \
		return value;                                                                      \
	}                                                                                          \
	HOLDS(name, HELD(0) | HELD(at))
