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

#define HERE ((uint32_t)AT_FDCWD) /* as a directory's descriptor: the working directory */

/* The inode at a path, with a reference; flags are AT_SYMLINK_NOFOLLOW and AT_EMPTY_PATH. */
int32_t inode_at(uint32_t directory, uint32_t address, uint32_t flags, struct inode **inode);

/* Two registers as one number. */
static inline uint64_t wide(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}
