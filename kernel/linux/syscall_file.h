/* Shared by the calls for files: those whose names end in "at", and those for open files. */
#pragma once

#include <stdint.h>

#include "fs/vfs/anonymous.h"
#include "kernel/abi/file.h"
#include "kernel/process/file_calls.h"
#include "mm/pool.h"

#define HERE ((uint32_t)AT_FDCWD) /* as a directory's descriptor: the working directory */

/* The operation of a call on an inode; the two numbers are the call's own arguments. */
typedef int inode_call(struct inode *inode, uint32_t first, uint32_t second);

/* The inode at a path, with a reference; flags are AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, and those
 * that mean nothing here. -EINVAL for others. */
int inode_at(uint32_t directory, uint32_t address, uint32_t flags, struct inode **inode);

/* Do something with the inode at a path, which inode_at finds, or with an open file's: its result,
 * inode_at's error, or -EBADF. */
int call_at(uint32_t directory, uint32_t address, uint32_t flags, inode_call *call, uint32_t first,
	    uint32_t second);
int call_file(uint32_t descriptor, inode_call *call, uint32_t first, uint32_t second);

/* A file without a name, with zeroed private data from a pool, to which the file's release gives it
 * back. NULL without memory. */
struct file *file_of_pool(struct anonymous *kind, const struct file_ops *ops, struct pool *pool,
			  uint32_t flags);

/* readv and writev, for files of these ops: they move one message. In lesson 4's kernel. */
extern const struct message_ops {
	const struct file_ops *ops;
	int (*move)(struct file *file, uint32_t vectors, uint32_t count, bool write);
} *message_ops;

/* The open file of a descriptor; NULL when there is none, or only a place (O_PATH), which most
 * calls refuse with -EBADF. */
static inline struct file *descriptor_opened(uint32_t descriptor)
{
	struct file *file = descriptor_file(descriptor);

	return file && !(file->flags & O_PATH) ? file : NULL;
}
