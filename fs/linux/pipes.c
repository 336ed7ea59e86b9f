/*
 * Operations on pipes for Linux's programs, other than reading and writing: open one by a name,
 * poll one, ask how much is in it, and what it is. fs/pipe.c calls what is defined here, if it is
 * linked. fifo(7), pipe(7).
 *
 * Each pipe has an inode here: that of its name, or one of its own, which is freed with its last
 * file. inode->pipe is NULL while the pipe is not open.
 */

#include "fs/pipe.h"
#include "fs/vfs/vfs.h"
#include "kernel/abi/poll.h"
#include "fs/linux/poll.h"
#include "mm/pool.h"

static struct pool nameless = POOL_INITIALIZER(struct inode);

static void nameless_forget(struct inode *inode)
{
	pool_free(&nameless, inode);
}

static const struct inode_ops nameless_ops = { .forget = nameless_forget };

/* The file holds the inode, until vfs_forget_file. */
static struct file *with_inode(struct file *file, struct inode *inode)
{
	file->inode = inode_hold(inode);
	file->forget = vfs_forget_file;
	return file;
}

/* An inode for a pipe without a name: fstat shows it, and /proc/PID/fd opens it once more. */
bool pipe_made(struct file *reader, struct file *writer)
{
	static uint32_t number;
	struct inode *inode = pool_alloc(&nameless);

	if (!inode)
		return false;
	inode_initialize(inode, S_IFIFO | 0600);
	inode->ops = &nameless_ops;
	inode->file_ops = &special_file_ops;
	inode->number = ++number;
	inode->pipe = with_inode(reader, inode)->private;
	with_inode(writer, inode);
	inode_put(inode); /* the files hold it */
	return true;
}

/* After the pipe is freed its name remains; opened again, it is an empty pipe. A file without an
 * inode is one of a pipe that could not be made whole. */
void pipe_freed(const struct file *file)
{
	if (file->inode)
		file->inode->pipe = NULL;
}

/* Waits until a process opens the other side, even if it closes it again at once. 0, -ENXIO (a
 * writer without O_NONBLOCK would wait), or -ERESTART. Of a pipe without a name the other side is
 * never waited for: fifo(7). */
static int wait_for_other(struct file *file, struct pipe *pipe)
{
	bool reads = file_readable(file);
	const uint32_t *opens = reads ? &pipe->writer_opens : &pipe->reader_opens, seen = *opens;

	if (reads && pipe->writers == 0)
		file->offset = *opens + 1;
	if ((reads ? pipe->writers : pipe->readers) > 0 || file->inode->ops == &nameless_ops)
		return 0;
	if (file->flags & O_NONBLOCK)
		return reads ? 0 : -ENXIO;
	return wait_event(&pipe->data, *opens != seen);
}

int pipe_open(struct file *file)
{
	struct pipe *pipe = file->inode->pipe;

	if (!pipe && !(pipe = file->inode->pipe = pool_alloc(&pipe_pool)))
		return -ENOMEM;
	file->ops = &pipe_ops;
	pipe_enter(pipe, file);
	pipe->reader_opens += file_readable(file);
	pipe->writer_opens += file_writable(file);
	wait_wake(&pipe->data);
	int error = wait_for_other(file, pipe);

	if (error)
		pipe_ops.release(file);
	return error;
}

/* A reader that came before any writer has not lost one. A stream needs no offset: the reader's is
 * one more than how many writers had come by then, or 0. */
static bool is_hung_up(const struct file *file, const struct pipe *pipe)
{
	return pipe->writers == 0 && file->offset != (uint64_t)pipe->writer_opens + 1;
}

/* A writer is told POLLOUT when a page is free, as on Linux: a write of PIPE_BUF bytes succeeds. */
uint32_t pipe_poll(struct file *file, struct poll_table *table)
{
	struct pipe *pipe = file->private;
	uint32_t ready = 0;

	if (file_readable(file)) {
		poll_add(table, &pipe->data);
		ready |= pipe_filled(pipe) > 0 ? POLLIN : 0;
		ready |= is_hung_up(file, pipe) ? POLLHUP : 0;
	}
	if (file_writable(file)) {
		poll_add(table, &pipe->room);
		ready |= pipe_has_room(pipe, 0) ? POLLOUT : 0;
		ready |= pipe->readers == 0 ? POLLERR : 0;
	}
	return ready;
}

int pipe_control(struct file *file, uint32_t command, uint32_t argument)
{
	uint32_t bytes = pipe_filled(file->private);

	if (command != FIONREAD)
		return -ENOTTY;
	return give(argument, &bytes, sizeof(bytes));
}
