/* Functions that the system calls for files share. All are for the current task. */
#pragma once

#include "fs/file.h"
#include "kernel/cpu/trap.h"

#define TRANSFER_MAX 0x7ffff000u /* bytes that one call moves at most, as in Linux */

/* A buffer of the program, cut to TRANSFER_MAX bytes. Returns false unless the range is wholly in
 * user space. */
bool buffer_from_call(struct buffer *buffer, uint32_t address, uint32_t length);

/* The end of every call that writes: -EPIPE also sends SIGPIPE. Returns the result. */
int end_write(int result);

/* Moves a file's offset by SEEK_SET, SEEK_CUR or SEEK_END. Returns 0, and the new one in *result;
 * -EBADF for NULL, -ESPIPE, -EINVAL. */
int file_seek(struct file *file, int64_t distance, uint32_t whence, int64_t *result);

/* The same, with SEEK_DATA, SEEK_HOLE, and files that have no offset. */
int file_seek_more(struct file *file, int64_t distance, uint32_t whence, int64_t *result) OPTIONAL;

/* Gives an open file the lowest free descriptor, and takes over the reference, which is gone also
 * after an error. flags are open's. */
int descriptor_add(struct file *file, uint32_t flags);

/* ioctl: calls the file's own operation. -EBADF for NULL, -ENOTTY if it has none. */
int file_control(struct file *file, uint32_t command, uint32_t argument);

/* ioctl with the commands that all files have, and then file_control. */
int ioctl_of_all(struct file *file, const struct trap_frame *frame) OPTIONAL;

/* Two registers as one number. */
static inline uint64_t wide(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}

/* Copies a path into a page, which path_page_free frees. Returns 0, -EFAULT, -ENAMETOOLONG or
 * -ENOMEM; after an error *path is as it was. */
int path_from_user(uint32_t address, char **path);
