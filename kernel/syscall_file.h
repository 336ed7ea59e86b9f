/* The system calls of files. */
#pragma once

#include <stdint.h>

#include "fs/inode.h"

/* Registers all of them. */
void syscall_file_register(void);

/* ---- for the parts of it: kernel/syscall_file.c, _path.c, _stat.c, _poll.c ---- */

void syscall_path_register(void);
void syscall_stat_register(void);
void syscall_poll_register(void);

/* A path of ring 3, and the directory where it begins if it is relative. */
struct place {
	struct inode *start;
	char *path; /* a page */
};

/* Fetches a path. directory is a descriptor or AT_FDCWD. -EFAULT, -ENAMETOOLONG, -EBADF, -ENOTDIR,
 * -ENOMEM; otherwise place_put gives it back. */
int32_t place_get(struct place *place, uint32_t directory, uint32_t address);
void place_put(struct place *place);

/* The inode at a path, with a reference; flags are AT_SYMLINK_NOFOLLOW and AT_EMPTY_PATH. */
int32_t inode_at(uint32_t directory, uint32_t address, uint32_t flags, struct inode **inode);

/* What a call is made of: a function of the frame's registers. */
#define CALL(name, result)                                                                         \
	static int32_t name(struct trap_frame *frame)                                              \
	{                                                                                          \
		return result;                                                                     \
	}

/* Two registers as one number. */
static inline uint64_t wide(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}
