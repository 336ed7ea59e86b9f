/*
 * Pipes: a ring of bytes in pages, which are allocated when the writer first comes to them and
 * freed with the pipe. A pipe that runs empty starts again at its first page, so small messages
 * need one page.
 */
#include "fs/pipe.h"

#include <stddef.h>

#include "kernel/lib/errno.h"
#include "mm/pool.h"
#include "kernel/process/signal.h"
#include "mm/page_alloc.h"

#define PAGES (PIPE_CAPACITY / PAGE_SIZE)

/* One of the two sides: the files that are open for it, and how many ever were. */
struct side {
	uint32_t files, opened;
};

struct pipe {
	struct inode inode;	 /* of a pipe without a name */
	uint8_t *pages[PAGES];	 /* NULL where nothing was written yet */
	uint32_t written, taken; /* bytes since it was empty last; byte n is at n % CAPACITY */
	struct side readers, writers;
	struct wait_queue data, room;
};

static struct pool pool = POOL_INITIALIZER(struct pipe);

static const struct file_ops reader_ops, writer_ops, both_ops;

static uint32_t filled(const struct pipe *pipe)
{
	return pipe->written - pipe->taken;
}

static uint32_t room(const struct pipe *pipe)
{
	return PIPE_CAPACITY - filled(pipe);
}

/* The page that byte `at` lies in; NULL without memory. */
static uint8_t *page_of(struct pipe *pipe, uint32_t at)
{
	uint8_t **page = &pipe->pages[at / PAGE_SIZE % PAGES];

	if (!*page)
		*page = page_alloc(0);
	return *page;
}

static uint32_t smallest(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t least = a < b ? a : b;

	return least < c ? least : c;
}

/* Mostly nobody waits. */
static void wake(struct wait_queue *queue)
{
	if (queue->first)
		wait_wake(queue);
}

/* ---- reading ---- */

/* Moves what is there. Returns how much, or an error when that is nothing. */
static int take(struct pipe *pipe, struct buffer *to)
{
	int done = 0, moved;

	while (to->length > 0 && filled(pipe) > 0) {
		uint32_t in_page = pipe->taken % PAGE_SIZE;

		moved = buffer_put(to, page_of(pipe, pipe->taken) + in_page,
				   smallest(to->length, filled(pipe), PAGE_SIZE - in_page));
		if (moved < 0)
			return done ? done : moved;
		pipe->taken += moved;
		done += moved;
	}
	if (filled(pipe) == 0)
		pipe->written = pipe->taken = 0;
	return done;
}

static int pipe_read(struct file *file, struct buffer *to, uint64_t offset)
{
	struct pipe *pipe = file->private;

	while (filled(pipe) == 0 && to->length > 0) {
		if (pipe->writers.files == 0)
			return 0;
		if (file->flags & O_NONBLOCK)
			return -EAGAIN;
		int error = wait_event(&pipe->data, filled(pipe) > 0 || pipe->writers.files == 0);

		if (error)
			return error;
	}
	int done = take(pipe, to);

	wake(&pipe->room);
	return done;
}

/* ---- writing ---- */

/* Moves what there is room for. Returns how much, or an error when that is nothing. */
static int put(struct pipe *pipe, struct buffer *from)
{
	int done = 0, moved;

	while (from->length > 0 && room(pipe) > 0) {
		uint32_t in_page = pipe->written % PAGE_SIZE;
		uint8_t *page = page_of(pipe, pipe->written);

		moved = page ? buffer_take(from, page + in_page,
					   smallest(from->length, room(pipe), PAGE_SIZE - in_page))
			     : -ENOMEM;
		if (moved < 0)
			return done ? done : moved;
		pipe->written += moved;
		done += moved;
	}
	return done;
}

/* Waits until `needed` bytes have room. */
static int wait_for_room(struct file *file, struct pipe *pipe, uint32_t needed)
{
	if (file->flags & O_NONBLOCK)
		return -EAGAIN;
	return wait_event(&pipe->room, room(pipe) >= needed || pipe->readers.files == 0);
}

/* One step of a write: waits or moves. Returns how much it moved, perhaps 0, or an error. */
static int write_some(struct file *file, struct pipe *pipe, struct buffer *from, uint32_t needed)
{
	if (pipe->readers.files == 0) {
		signal_send(current->process, SIGPIPE);
		return -EPIPE;
	}
	if (room(pipe) < needed)
		return wait_for_room(file, pipe, needed);
	int moved = put(pipe, from);

	wake(&pipe->data);
	return moved;
}

static int pipe_write(struct file *file, struct buffer *from, uint64_t offset)
{
	struct pipe *pipe = file->private;
	uint32_t needed = from->length <= PIPE_BUF ? from->length : 1; /* not torn apart */
	int done = 0;

	while (from->length > 0) {
		int moved = write_some(file, pipe, from, needed);

		if (moved < 0)
			return done ? done : moved;
		done += moved;
	}
	return done;
}

/* ---- the ends ---- */

static uint32_t pipe_poll(struct file *file, struct poll_table *table)
{
	struct pipe *pipe = file->private;
	uint32_t ready = 0;

	if (file_readable(file)) {
		poll_add(table, &pipe->data);
		ready |= filled(pipe) > 0 ? POLLIN : 0;
		ready |= pipe->writers.files == 0 ? POLLHUP : 0;
	}
	if (file_writable(file)) {
		poll_add(table, &pipe->room);
		ready |= room(pipe) >= PIPE_BUF ? POLLOUT : 0;
		ready |= pipe->readers.files == 0 ? POLLERR : 0;
	}
	return ready;
}

static int pipe_control(struct file *file, uint32_t command, uint32_t argument)
{
	uint32_t bytes = filled(file->private);

	if (command != FIONREAD)
		return -ENOTTY;
	return give(argument, &bytes, sizeof(bytes));
}

static void free_pipe(struct pipe *pipe)
{
	for (uint32_t i = 0; i < PAGES; i++)
		if (pipe->pages[i])
			page_free(pipe->pages[i], 0);
	pool_free(&pool, pipe);
}

/* The inode of a pipe without a name has the pipe's life; a named one's outlives it. */
static void leave(struct pipe *pipe, struct file *file)
{
	pipe->readers.files -= file_readable(file);
	pipe->writers.files -= file_writable(file);
	wake(&pipe->data);
	wake(&pipe->room);
	if (pipe->readers.files + pipe->writers.files > 0 || file->inode == &pipe->inode)
		return;
	file->inode->pipe = NULL;
	free_pipe(pipe);
}

static void pipe_release(struct file *file)
{
	leave(file->private, file);
}

static void pipe_forget(struct inode *inode)
{
	free_pipe((struct pipe *)((char *)inode - offsetof(struct pipe, inode)));
}

static const struct inode_ops pipe_inode_ops = { .forget = pipe_forget };

#define PIPE_OPS                                                                                   \
	.control = pipe_control, .poll = pipe_poll, .release = pipe_release, .is_stream = true

static const struct file_ops reader_ops = { .read = pipe_read, PIPE_OPS };
static const struct file_ops writer_ops = { .write = pipe_write, PIPE_OPS };
static const struct file_ops both_ops = { .read = pipe_read, .write = pipe_write, PIPE_OPS };

static void join(struct side *side, uint32_t files)
{
	side->files += files;
	side->opened += files;
}

static void enter(struct pipe *pipe, struct file *file)
{
	file->private = pipe;
	file->ops = !file_writable(file)   ? &reader_ops
		    : !file_readable(file) ? &writer_ops
					   : &both_ops;
	join(&pipe->readers, file_readable(file));
	join(&pipe->writers, file_writable(file));
}

int pipe_create(uint32_t flags, struct file **reader, struct file **writer)
{
	static uint32_t number;
	struct pipe *pipe = pool_alloc(&pool);

	if (!pipe)
		return -ENFILE;
	inode_initialize(&pipe->inode, S_IFIFO | 0600);
	pipe->inode.ops = &pipe_inode_ops;
	pipe->inode.number = ++number;
	pipe->inode.pipe = pipe; /* for who opens it by /proc/PID/fd */
	*reader = file_create(&reader_ops, &pipe->inode, O_RDONLY | flags);
	*writer = *reader ? file_create(&writer_ops, &pipe->inode, O_WRONLY | flags) : NULL;
	if (*reader)
		enter(pipe, *reader);
	if (*writer)
		enter(pipe, *writer);
	inode_put(&pipe->inode); /* the files hold it */
	if (*writer)
		return 0;
	if (*reader)
		file_release(*reader);
	return -ENFILE;
}

/* ---- pipes with a name ---- */

/* Waits until somebody opens the other side, be it for a moment only. */
static int wait_for_other(struct file *file, struct pipe *pipe)
{
	const struct side *other = file_readable(file) ? &pipe->writers : &pipe->readers;
	uint32_t seen = other->opened;

	if (other->files > 0 || file->inode == &pipe->inode)
		return 0;
	if (file->flags & O_NONBLOCK)
		return file_readable(file) ? 0 : -ENXIO;
	return wait_event(&pipe->data, other->opened != seen);
}

static int pipe_open_named(struct file *file)
{
	struct pipe *pipe = file->inode->pipe;

	if (!pipe)
		pipe = file->inode->pipe = pool_alloc(&pool);
	if (!pipe)
		return -ENOMEM;
	enter(pipe, file);
	wake(&pipe->data);
	int error = wait_for_other(file, pipe);

	if (error)
		leave(pipe, file);
	return error;
}

const struct file_ops pipe_named_ops = { .open = pipe_open_named };

uint32_t pipe_count(void)
{
	return pool.used;
}
