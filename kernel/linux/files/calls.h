/*
 * Shared by the calls for files. A call names a file in one of three ways, and all three lead to an
 * inode:
 *
 *	a path			inode_at, call_at	stat, chmod; those that end in "at"
 *	an open file		call_file		fstat, fchmod
 *	a file that it reads	SYSCALL_OFFSET ...	kernel/linux/call.h
 */
#pragma once

#include "fs/path_page.h"
#include "fs/vfs/anonymous.h"
#include "kernel/linux/call.h"
#include "kernel/process/file_calls.h"
#include "kernel/task/sched.h"
#include "mm/pool.h"

#define HERE ((uint32_t)AT_FDCWD) /* as a directory's descriptor: the working directory */

/* The operation of a call on an inode; the two numbers are the call's own arguments. */
typedef int inode_call(struct inode *inode, uint32_t first, uint32_t second);

/* The inode at a path, with a reference; flags are AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, and those
 * that mean nothing here. -EINVAL for others. May sleep, as all three. */
int inode_at(uint32_t directory, uint32_t address, uint32_t flags, struct inode **inode);

/* Do something with the inode at a path, which inode_at finds, or with an open file's: its result,
 * inode_at's error, or (NULL) -EBADF. */
int call_at(uint32_t directory, uint32_t address, uint32_t flags, inode_call *call, uint32_t first,
	    uint32_t second);

/* The first arguments of call_at in a call whose own first argument is a path: what that leads to,
 * and, of a symbolic link, the link itself. */
#define PATH_OF(frame) HERE, (frame)->ebx, 0
#define LINK_OF(frame) HERE, (frame)->ebx, AT_SYMLINK_NOFOLLOW

static inline int call_file(const struct file *file, inode_call *call, uint32_t first,
			    uint32_t second)
{
	return file ? call(file->inode, first, second) : -EBADF;
}

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
