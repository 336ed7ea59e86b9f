/* Files without a name in any directory, such as timers: what fstat and /proc/PID/fd show of them.
 */
#pragma once

#include "fs/file.h"
#include "fs/vfs/inode.h"

/* A kind of such files. All of a kind have one inode, which is there for ever. */
struct anonymous {
	struct inode inode; /* first: the two have one address */
	const char *kind;   /* as /proc/PID/fd names it: anon_inode:KIND */
};

/* A file of this kind with one reference; NULL without memory. */
struct file *anonymous_file(struct anonymous *anonymous, const struct file_ops *ops, void *private,
			    uint32_t flags);

/* The name of an inode's kind; NULL: it is not anonymous. */
const char *anonymous_kind(const struct inode *inode);
