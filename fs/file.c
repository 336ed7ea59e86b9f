/*
 * Open files: what a descriptor leads to, and what reads and writes an inode.
 *
 *	struct file	offset, flags of open, references	one for each open()
 *	  inode ------>	what the name stood for			one for each file on the disk
 *	  ops -------->	read, write, release, ...		one for each kind of file
 *
 * The operations come from the inode, which its file system has given them; a device's inode brings
 * an open that puts the device's own in their place. Nothing here knows kinds of files: adding one
 * is a table of operations.
 *
 * A file lives as long as somebody has a reference: each descriptor has one, and whoever works with
 * a file for longer than a call. The offset belongs to the file, and only file_read and file_write
 * move it. No lock: a call that sleeps in an operation may find the offset moved by another task
 * with the same file, as in Linux before 3.14.
 */
#include "fs/file.h"

#include <stddef.h>

#include "kernel/lib/errno.h"
#include "mm/pool.h"

static struct pool pool = POOL_INITIALIZER(struct file);

/* Flags that only matter while opening are dropped: F_GETFL must not show them. */
/* Flags that only say how to open are dropped: fcntl shows the others. */
struct file *file_create(const struct file_ops *ops, struct inode *inode, uint32_t flags)
{
	struct file *file = pool_alloc(&pool);

	if (!file)
		return NULL;
	file->ops = ops;
	file->inode = inode_hold(inode);
	file->flags = flags & ~(O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC);
	file->references = 1;
	return file;
}

/* inode->writers counts these, and inode->programs those that run: a program is not written to. */
static bool is_writer(const struct file *file)
{
	return inode_is(file->inode, S_IFREG) && file_writable(file);
}

/* If the operations' open fails, nothing but the two allocations has to be undone. */
/* Counted as a writer only when open has agreed. If it has not, release is not called. */
int file_open_inode(struct inode *inode, uint32_t flags, struct file **file)
{
	const struct file_ops *ops = inode->file_ops;
	struct file *opened;

	if (!ops)
		return -ENXIO;
	if (inode->programs > 0 && (flags & O_ACCMODE) != O_RDONLY)
		return -ETXTBSY;
	opened = file_create(ops, inode, flags);
	if (!opened)
		return -ENFILE;
	int error = ops->open ? ops->open(opened) : 0;

	if (error) {
		inode_put(inode);
		pool_free(&pool, opened);
		return error;
	}
	inode->writers += is_writer(opened);
	*file = opened;
	return 0;
}

void file_hold(struct file *file)
{
	file->references++;
}

/* Release comes first: the operations may still need the inode. */
/* The operations go first: they may still use the inode. */
void file_release(struct file *file)
{
	if (--file->references > 0)
		return;
	if (file->ops->release)
		file->ops->release(file);
	file->inode->writers -= is_writer(file);
	file->inode->programs -= file->is_program;
	inode_put(file->directory);
	inode_put(file->inode);
	pool_free(&pool, file);
}

uint32_t file_count(void)
{
	return pool.used;
}

/* What a missing operation is answered with. */
static int refusal(const struct file *file)
{
	return inode_is(file->inode, S_IFDIR) ? -EISDIR : -EINVAL;
}

int file_read_at(struct file *file, struct buffer *to, uint64_t offset)
{
	return file->ops->read ? file->ops->read(file, to, offset) : refusal(file);
}

int file_write_at(struct file *file, struct buffer *from, uint64_t offset)
{
	return file->ops->write ? file->ops->write(file, from, offset) : refusal(file);
}

/* Only what was really moved counts: after a short count the next read continues there. */
int file_read(struct file *file, struct buffer *to)
{
	int moved = file_read_at(file, to, file->offset);

	if (moved > 0 && !file->ops->is_stream)
		file->offset += moved;
	return moved;
}

/* Moving to the end and writing are one step with respect to other tasks, as O_APPEND promises. */
int file_write(struct file *file, struct buffer *from)
{
	if (file->flags & O_APPEND) /* for each write again: others may have written meanwhile */
		file->offset = file->inode->size;
	int moved = file_write_at(file, from, file->offset);

	if (moved > 0 && !file->ops->is_stream)
		file->offset += moved;
	return moved;
}
