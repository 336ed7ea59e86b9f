/* What the parts of the system calls of files share: kernel/linux/syscall_file.c, _path.c, _stat.c,
 * and _poll.c. */
#pragma once

#include <stdint.h>

#include "fs/inode.h"

#define HERE ((uint32_t)AT_FDCWD) /* as a directory's descriptor: the working directory */

/* The inode at a path, with a reference; flags are AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, and those
 * that mean nothing here. -EINVAL for others. */
int inode_at(uint32_t directory, uint32_t address, uint32_t flags, struct inode **inode);

/* What a call does with an inode; the two numbers are the call's own arguments. */
typedef int inode_call(struct inode *inode, uint32_t first, uint32_t second);

/* Do that with the inode at a path, which inode_at finds, or with an open file's: its result,
 * inode_at's error, or -EBADF. */
int call_at(uint32_t directory, uint32_t address, uint32_t flags, inode_call *call, uint32_t first,
	    uint32_t second);
int call_file(uint32_t descriptor, inode_call *call, uint32_t first, uint32_t second);

/* Two registers as one number. */
static inline uint64_t wide(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}
