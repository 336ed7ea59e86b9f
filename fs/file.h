/*
 * Open files, as programs see them, and the operations that stand behind them: of a file system, a
 * device, a pipe or the terminal.
 *
 * Functions return 0 (or a count) or a negated errno. They may sleep where the operation does.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fs/inode.h"
#include "mm/user_copy.h"
#include "kernel/task/wait.h"

struct file;

/* Where a task that polls waits. */
struct poll_table {
	struct waiter *waiters; /* room for `limit` of them */
	uint32_t count, limit;
};

static inline void poll_add(struct poll_table *table, struct wait_queue *queue)
{
	if (table && table->count < table->limit)
		wait_join(queue, &table->waiters[table->count++]);
}

/* What an open file can do; an operation that is NULL is refused: with EINVAL, or EISDIR for
 * directories; control with ENOTTY. */
struct file_ops {
	/* The file has been opened by its name, and may be given other ops or private data. */
	int (*open)(struct file *file);
	/* Move up to buffer->length bytes, from the file's bytes at offset on (which a stream
	 * ignores). Return how many, 0 at the end, or a negated errno. */
	int (*read)(struct file *file, struct buffer *to, uint64_t offset);
	int (*write)(struct file *file, struct buffer *from, uint64_t offset);
	/* A device's own commands; argument is ring 3's word, often an address there. */
	int (*control)(struct file *file, uint32_t command, uint32_t argument);
	/* Which of POLLIN, POLLOUT, POLLERR, POLLHUP hold now; gives the table, unless that is
	 * NULL, the queue that wakes when one of them begins to hold. NULL: always ready. */
	uint32_t (*poll)(struct file *file, struct poll_table *table);
	/* The last reference is gone. */
	void (*release)(struct file *file);
	bool is_stream; /* no offsets (ESPIPE): a pipe, the terminal */
};

struct file {
	const struct file_ops *ops;
	struct inode *inode;	 /* a reference */
	struct inode *directory; /* where it was found, a reference; NULL: it has no name */
	void *private;		 /* the operations' own */
	uint64_t offset;	 /* of the next read or write */
	uint32_t flags;		 /* O_ACCMODE, O_APPEND, O_NONBLOCK, ... as open got them */
	uint32_t references;
	bool is_program; /* see file_open_program */
};

static inline bool file_readable(const struct file *file)
{
	return !(file->flags & (O_WRONLY | O_PATH));
}

static inline bool file_writable(const struct file *file)
{
	return (file->flags & O_ACCMODE) != O_RDONLY;
}

/* Opens a path, from the current task's directory if it is relative. flags and mode are open's.
 * *file has one reference, which file_release gives back. */
int file_open(const char *path, uint32_t flags, uint32_t mode, struct file **file);

/* The same for a program to be run: until the file is released nobody can open it to write, which
 * is -ETXTBSY here as well as there. */
int file_open_program(const char *path, struct file **file);

/* A file with one reference, for an inode, of which it takes a reference of its own. The ops' open
 * is not called. NULL without memory. */
struct file *file_create(const struct file_ops *ops, struct inode *inode, uint32_t flags);

/* The same for an inode that has a name: a device's ops follow from its number, and open is called.
 */
int file_open_inode(struct inode *inode, uint32_t flags, struct file **file);

void file_hold(struct file *file);
void file_release(struct file *file);

/* Read or write at an offset, without moving the file's own. */
int file_read_at(struct file *file, struct buffer *to, uint64_t offset);
int file_write_at(struct file *file, struct buffer *from, uint64_t offset);

/* Read or write where the file's offset is, and move it. */
int file_read(struct file *file, struct buffer *to);
int file_write(struct file *file, struct buffer *from);

/* Copies between two files, from an offset on, which is moved; NULL: that of the file. Stops where
 * one of the two gives or takes less, and may be interrupted by a signal. Returns how many bytes.
 */
int file_copy(struct file *to, struct file *from, uint64_t *offset, uint32_t length);

/* How many files are open, so that a leak shows. */
uint32_t file_count(void);

/* ---- a task's descriptors, its directory and its umask ---- */

struct files;

/* An empty table, at the root directory; or a copy that shares the open files. NULL without
 * memory. */
struct files *files_create(void);
struct files *files_copy(const struct files *files);

/* Closes everything. */
void files_destroy(struct files *files);

/* Notes which program the task runs now: a file of file_open_program's, or NULL. */
void files_set_program(struct files *files, struct file *program);

/* Closes those with FD_CLOEXEC, as exec wants it. */
void files_close_on_exec(struct files *files);
