/*
 * Pipes: a ring of 16 pages between writers and readers.
 *
 *	   taken	after a write of 6000 bytes: 1904 and a whole page
 *	     v
 *	[....####][########][##......]			         [    ]
 *	[....####][########][####....][########]	         [    ]
 *	                                        ^ end
 *
 * A write puts its whole pages into pages of their own, and the rest into the last page, if there
 * is room for all of it, or into one more. That is Linux's rule, and programs see it: a pipe can be
 * full with less than 64 KiB in it, and how much a non-blocking write moves depends on it. A page
 * is free again when all of it was read.
 *
 * All positions and counts only grow (and wrap around). The ring is allocated by the first write
 * and freed with the pipe.
 *
 * A reader sleeps while the pipe is empty and there are writers; a writer sleeps while no page is
 * free and there are readers. Without writers a reader gets 0, the end of the file;
 * without readers a writer gets -EPIPE. Every change of the contents or the two sides wakes
 * the tasks that wait for it. A write of up to PIPE_BUF bytes fits into one page, so it is atomic.
 *
 * A copy to or from a program may sleep, in a page fault. So one reader at a time copies, and one
 * writer, and each looks again at what there is when its turn has come. The two do not disturb each
 * other: `read` is the reader's, all of `written`, `end` and `ends` the writer's, and `taken` is
 * the reader's unless the pipe is empty. Each says what it has moved after its copy.
 *
 * Called by system calls, for the current task; nothing here is called by interrupt handlers.
 */
#include "fs/pipe.h"

#include "kernel/abi/limits.h"
#include "mm/page_alloc.h"
#include "mm/pool.h"

struct pool pipe_pool = POOL_INITIALIZER(struct pipe);

/* How much was written to the page of byte `at`. */
static uint16_t *page_end(struct pipe *pipe, uint32_t at)
{
	return &pipe->ends[at % PIPE_CAPACITY / PAGE_SIZE];
}

/* ---- reading ---- */

/* Moves what is in the pipe when this reader's turn has come. Returns how many bytes, perhaps 0, or
 * an error if none could be moved. */
static int take_bytes(struct pipe *pipe, struct buffer *to)
{
	int done = 0, moved = 0;

	claim_take(&pipe->reading);
	while (pipe_filled(pipe) > 0) {
		uint32_t left = *page_end(pipe, pipe->taken) - pipe->taken % PAGE_SIZE;

		if (left == 0) { /* go on in the next page */
			pipe->taken += -pipe->taken % PAGE_SIZE;
			continue;
		}
		if (to->length == 0)
			break;
		moved = buffer_put(to, pipe->ring + pipe->taken % PIPE_CAPACITY, left);
		if (moved < 0)
			break;
		pipe->taken += moved;
		pipe->read += moved;
		done += moved;
	}
	claim_give(&pipe->reading);
	if (pipe->room.first)
		wait_wake(&pipe->room);
	return done ? done : moved;
}

/* Sleeps only while there is nothing at all: a reader gets what is there, even if it wants more.
 * Without writers that may be nothing; and it may be gone when this reader's turn has come. */
static int pipe_read(struct file *file, struct buffer *to, uint64_t offset)
{
	struct pipe *pipe = file->private;
	int done = 0;

	while (done == 0 && to->length > 0 && (pipe_filled(pipe) > 0 || pipe->writers > 0)) {
		done = pipe_filled(pipe) > 0 ? take_bytes(pipe, to)
		       : file->flags & O_NONBLOCK
			   ? -EAGAIN
			   : wait_event(&pipe->data, pipe_filled(pipe) > 0 || pipe->writers == 0);
	}
	return done;
}

/* ---- writing ---- */

/* Does the part of a write that is less than a page fit into the last one? */
static bool fits_in_last_page(struct pipe *pipe, uint32_t length)
{
	return length % PAGE_SIZE > 0 && pipe_filled(pipe) > 0 &&
	       *page_end(pipe, pipe->end - 1) + length % PAGE_SIZE <= PAGE_SIZE;
}

inline bool pipe_has_room(struct pipe *pipe, uint32_t length)
{
	return pipe->end - pipe->taken / PAGE_SIZE * PAGE_SIZE < PIPE_CAPACITY ||
	       fits_in_last_page(pipe, length);
}

/* Moves as much as fits when this writer's turn has come. Returns how many bytes, perhaps 0, or an
 * error if none could be moved. */
static int put_bytes(struct pipe *pipe, struct buffer *from)
{
	int done = 0, moved = 0;

	claim_take(&pipe->writing);
	if (!pipe->ring && !(pipe->ring = page_alloc(PIPE_ORDER)))
		moved = -ENOMEM;
	while (pipe->ring && from->length > 0 && pipe_has_room(pipe, from->length)) {
		if (pipe_filled(pipe) == 0)
			pipe->taken = pipe->end;
		uint32_t added = fits_in_last_page(pipe, from->length) ? 0 : PAGE_SIZE;
		uint32_t at = pipe->end - (added ? 0 : PAGE_SIZE - *page_end(pipe, pipe->end - 1));

		moved = buffer_take(from, pipe->ring + at % PIPE_CAPACITY,
				    added ? added : from->length % PAGE_SIZE);
		if (moved <= 0)
			break;
		*page_end(pipe, at) = at % PAGE_SIZE + moved;
		pipe->end += added;
		pipe->written += moved;
		done += moved;
	}
	claim_give(&pipe->writing);
	if (pipe->data.first)
		wait_wake(&pipe->data);
	return done ? done : moved;
}

/* Writes everything, in as many steps as it takes, unless an error or a signal comes first; what
 * was written until then counts. */
static int pipe_write(struct file *file, struct buffer *from, uint64_t offset)
{
	struct pipe *pipe = file->private;
	int done = 0, moved;

	for (; from->length > 0; done += moved) {
		moved = pipe->readers == 0		    ? -EPIPE
			: pipe_has_room(pipe, from->length) ? put_bytes(pipe, from)
			: file->flags & O_NONBLOCK
			    ? -EAGAIN
			    : wait_event(&pipe->room,
					 pipe_has_room(pipe, from->length) || pipe->readers == 0);
		if (moved < 0)
			return done ? done : moved;
	}
	return done;
}

/* ---- the ends ---- */

/* No file has it open any more, so no task sleeps in its queues. */
static void free_pipe(struct pipe *pipe)
{
	if (pipe->ring)
		page_free(pipe->ring, PIPE_ORDER);
	pool_free(&pipe_pool, pipe);
}

/* A file that is open for reading and writing counts on both sides. */
void pipe_enter(struct pipe *pipe, struct file *file)
{
	file->private = pipe;
	pipe->readers += file_readable(file);
	pipe->writers += file_writable(file);
}

/* Both queues are woken: a task that waits for data gets the end of the file, one that waits for
 * room gets -EPIPE. The last file to leave frees the pipe. */
static void pipe_release(struct file *file)
{
	struct pipe *pipe = file->private;

	pipe->readers -= file_readable(file);
	pipe->writers -= file_writable(file);
	wait_wake(&pipe->data);
	wait_wake(&pipe->room);
	if (pipe->readers + pipe->writers > 0)
		return;
	if (pipe_freed)
		pipe_freed(file);
	free_pipe(pipe);
}

const struct file_ops pipe_ops = {
	.read = pipe_read,
	.write = pipe_write,
	.control = pipe_control,
	.poll = pipe_poll,
	.release = pipe_release,
	.is_stream = true,
};

/* A file for one side of a pipe; NULL without memory. */
static struct file *open_end(struct pipe *pipe, uint32_t flags)
{
	struct file *file = file_create(&pipe_ops, pipe, flags);

	if (file)
		pipe_enter(pipe, file);
	return file;
}

/* From the first file on the pipe goes with the last. */
int pipe_create(uint32_t flags, struct file **reader, struct file **writer)
{
	struct pipe *pipe = pool_alloc(&pipe_pool);

	*reader = pipe ? open_end(pipe, O_RDONLY | flags) : NULL;
	*writer = *reader ? open_end(pipe, O_WRONLY | flags) : NULL;
	if (*writer && (!pipe_made || pipe_made(*reader, *writer)))
		return 0;
	if (*writer)
		file_release(*writer);
	if (*reader)
		file_release(*reader);
	else if (pipe)
		free_pipe(pipe);
	return -ENFILE;
}
