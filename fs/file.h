/*
 * Open files, as programs see them, and the operations that they have: of a file system, a
 * device, a pipe or the terminal.
 *
 * Functions return 0 (or a count) or a negated errno. They may sleep where the operation does.
 */
#pragma once

#include <stddef.h>

#include "kernel/abi/fcntl.h"
#include "kernel/lib/optional.h"
#include "kernel/task/claim.h"
#include "mm/user_copy.h"

struct file;
struct inode;
struct memory_object;
struct poll_table;

/* The operations of an open file; a call whose operation is NULL fails with EINVAL, control with
 * ENOTTY.
 */
struct file_ops {
	/* The file has been opened by a name in a file system, and may be given other ops (a
	 * device's, by its number) or private data. */
	int (*open)(struct file *file);
	/* Move up to buffer->length bytes, from the file's bytes at offset on (which a stream
	 * ignores). Return how many, 0 at the end, or a negated errno. */
	int (*read)(struct file *file, struct buffer *to, uint64_t offset);
	int (*write)(struct file *file, struct buffer *from, uint64_t offset);
	/* A device's own commands; argument is the program's word, often a user address. */
	int (*control)(struct file *file, uint32_t command, uint32_t argument);
	/* Which of POLLIN, POLLOUT, POLLERR, POLLHUP hold now; gives the table, unless that is
	 * NULL, the queues that wake when one of them begins to hold. NULL: always ready. */
	uint32_t (*poll)(struct file *file, struct poll_table *table);
	/* How many bytes it has. NULL: always 0, as for a file without an end. */
	uint64_t (*size)(const struct file *file);
	/* What areas show of it; NULL: it cannot be mapped. */
	struct memory_object *(*memory)(struct file *file);

	/* Makes what was written safe from a power cut: fsync, or (data_only) fdatasync. NULL: it
	 * is in memory. */
	int (*sync)(struct file *file, bool data_only);
	/* posix_fadvise, with Linux's numbers. NULL: nothing to do. */
	int (*advise)(struct file *file, uint64_t offset, uint64_t length, uint32_t advice);

	/* The last reference is gone. */
	void (*release)(struct file *file);
	bool is_stream; /* no offsets (ESPIPE): a pipe, the terminal */
};

struct file {
	const struct file_ops *ops;
	void *private;	 /* the operations' own */
	uint64_t offset; /* of the next read or write */
	uint32_t flags;	 /* O_ACCMODE, O_APPEND, O_NONBLOCK, ... as open got them */
	uint32_t references;
	struct claim moving; /* of the task that uses the offset; see file_offset_lock */
	int32_t owner;	     /* fcntl's F_SETOWN; it is sent nothing */

	/* Of a file that was opened in a file system (fs/vfs); else NULL. */
	struct inode *inode, *directory; /* references; where it was found, NULL: it has no name */
	void (*forget)(struct file *file); /* the last reference is gone */
	uint32_t mount_errors;		   /* of write-back, that syncfs need not tell it */
	struct claim *appending; /* in place of `moving` with O_APPEND, or NULL: the inode's */
	bool is_program;	 /* it is being run */
	struct watch *watches;	 /* epoll's items of it */
};

/* An access mode of O_ACCMODE is neither. */
static inline bool file_readable(const struct file *file)
{
	return (file->flags & O_ACCMODE) == O_RDONLY || (file->flags & O_ACCMODE) == O_RDWR;
}

static inline bool file_writable(const struct file *file)
{
	return (file->flags & O_ACCMODE) == O_WRONLY || (file->flags & O_ACCMODE) == O_RDWR;
}

/* A file with one reference. The ops' open is not called. NULL without memory. */
struct file *file_create(const struct file_ops *ops, void *private, uint32_t flags);

/* Frees a file to which nobody refers any more. A caller that uses a file for longer than one call
 * adds a reference to it, and releases that. */
void file_end(struct file *file);

/* epoll's items of a file that ends go with it. */
void file_unwatch(struct file *file) OPTIONAL;

static inline void file_release(struct file *file)
{
	if (--file->references == 0)
		file_end(file);
}

/* Read or write at an offset, without moving the file's own. */
static inline int file_read_at(struct file *file, struct buffer *to, uint64_t offset)
{
	return file->ops->read ? file->ops->read(file, to, offset) : -EINVAL;
}

static inline int file_write_at(struct file *file, struct buffer *from, uint64_t offset)
{
	return file->ops->write ? file->ops->write(file, from, offset) : -EINVAL;
}

/* One task at a time uses a file's offset, because a copy to or from a program may sleep. With
 * O_APPEND the offset is the size, which all who have the file open share. Not for a stream, which
 * has no offset, and whose reads may wait for ever. Sleeps. claim_give unlocks. */
static inline struct claim *file_offset_lock(struct file *file)
{
	bool appends = file->flags & O_APPEND && file->appending;
	struct claim *claim = appends ? file->appending : &file->moving;

	claim_take(claim);
	return claim;
}

/* Read or write where the file's offset is, and move it: the caller has locked it if other tasks
 * have the file. */
int file_read(struct file *file, struct buffer *to);
int file_write(struct file *file, struct buffer *from);

/* How many bytes it has: 0 for a stream, and for a file without an end. */
uint64_t file_size(const struct file *file);

/* All open files. */
extern struct pool file_pool;
