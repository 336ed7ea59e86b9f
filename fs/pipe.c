/*
 * Pipes: a ring of 64 KiB between writers and readers.
 *
 *	taken = 3                written = 8200
 *	   v                         v
 *	[..#########################...........................................]
 *
 * `written` and `taken` only grow (and wrap around), so their difference is what the pipe holds;
 * byte n is at n % 65536. The ring is allocated by the first write and freed with the pipe.
 *
 * A reader sleeps while the pipe is empty and there are writers; a writer sleeps while it is full
 * and there are readers. Without writers a reader gets 0, the end of the file;
 * without readers a writer gets -EPIPE. Every change of `written`, `taken` or the two sides wakes
 * the tasks that wait for it. A write of up to PIPE_BUF bytes is not torn apart.
 *
 * A copy to or from a program may sleep, in a page fault. So one reader at a time copies, and one
 * writer, and each looks again at what there is when its turn has come. The two do not disturb each
 * other: a reader changes `taken` only, after its copy, and a writer `written`.
 *
 * Called by system calls, for the current task; nothing here is called by interrupt handlers.
 */
#include "fs/pipe.h"

#include "kernel/abi/limits.h"
#include "mm/page_alloc.h"
#include "mm/pool.h"

#define RING_ORDER 4 /* of PIPE_CAPACITY, in pages */

static struct pool pool = POOL_INITIALIZER(struct pipe);

bool (*pipe_made)(struct file *reader, struct file *writer);

/* How much can be moved at once, from byte `at` on: up to the end of the ring. */
static uint32_t chunk_at(uint32_t at, uint32_t length, uint32_t limit)
{
	uint32_t to_end = PIPE_CAPACITY - at % PIPE_CAPACITY;
	uint32_t least = length < limit ? length : limit;

	return least < to_end ? least : to_end;
}

/* ---- reading ---- */

/* Moves what is in the pipe. Returns how many bytes, or an error if none could be moved. */
static int take(struct pipe *pipe, struct buffer *to)
{
	int done = 0;

	while (to->length > 0 && pipe_filled(pipe) > 0) {
		int moved = buffer_put(to, pipe->ring + pipe->taken % PIPE_CAPACITY,
				       chunk_at(pipe->taken, to->length, pipe_filled(pipe)));

		if (moved < 0)
			return done ? done : moved;
		pipe->taken += moved;
		done += moved;
	}
	return done;
}

/* Is there nothing to read yet, but may there be? */
static bool must_wait(const struct pipe *pipe)
{
	return pipe_filled(pipe) == 0 && pipe->writers > 0;
}

/* Sleeps only while there is nothing at all: a reader gets what is there, be it less than it wants.
 * Without writers that may be nothing; and it may be gone when this reader's turn has come. */
static int pipe_read(struct file *file, struct buffer *to, uint64_t offset)
{
	struct pipe *pipe = file->private;
	int done = 0;

	while (done == 0 && to->length > 0) {
		if (must_wait(pipe) && (file->flags & O_NONBLOCK))
			return -EAGAIN;
		int error = must_wait(pipe) ? wait_event(&pipe->data, !must_wait(pipe)) : 0;

		if (error)
			return error;
		claim_take(&pipe->reading);
		done = take(pipe, to);
		claim_give(&pipe->reading);
		if (pipe->room.first)
			wait_wake(&pipe->room);
		if (!must_wait(pipe))
			break;
	}
	return done;
}

/* ---- writing ---- */

/* Moves as much as fits. Returns how many bytes, or an error if none could be moved. */
static int put(struct pipe *pipe, struct buffer *from)
{
	int done = 0;

	if (!pipe->ring)
		pipe->ring = page_alloc(RING_ORDER);
	if (!pipe->ring)
		return -ENOMEM;
	while (from->length > 0 && pipe_room(pipe) > 0) {
		int moved = buffer_take(from, pipe->ring + pipe->written % PIPE_CAPACITY,
					chunk_at(pipe->written, from->length, pipe_room(pipe)));

		if (moved < 0)
			return done ? done : moved;
		pipe->written += moved;
		done += moved;
	}
	return done;
}

/* One step of a write: waits until `needed` bytes have room, or moves what fits, if they still have
 * when this writer's turn has come. Returns how much it moved, perhaps 0, or an error. */
static int write_some(struct file *file, struct pipe *pipe, struct buffer *from, uint32_t needed)
{
	if (pipe->readers == 0)
		return -EPIPE;
	if (pipe_room(pipe) < needed)
		return file->flags & O_NONBLOCK
			   ? -EAGAIN
			   : wait_event(&pipe->room,
					pipe_room(pipe) >= needed || pipe->readers == 0);
	claim_take(&pipe->writing);
	int moved = pipe_room(pipe) >= needed ? put(pipe, from) : 0;

	claim_give(&pipe->writing);
	if (pipe->data.first)
		wait_wake(&pipe->data);
	return moved;
}

/* Writes everything, in as many steps as it takes, unless an error or a signal comes first; what
 * was written until then counts. */
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

struct pipe *pipe_new(void)
{
	return pool_alloc(&pool);
}

/* No file has it open any more, so no task sleeps in its queues. */
static void free_pipe(struct pipe *pipe)
{
	if (pipe->ring)
		page_free(pipe->ring, RING_ORDER);
	pool_free(&pool, pipe);
}

/* A file that is open for reading and writing counts on both sides. */
void pipe_enter(struct pipe *pipe, struct file *file)
{
	file->private = pipe;
	pipe->readers += file_readable(file);
	pipe->writers += file_writable(file);
}

/* Both queues are woken: a task that waits for data gets the end of the file, one that waits for
 * room gets -EPIPE. */
bool pipe_leave(struct pipe *pipe, struct file *file)
{
	pipe->readers -= file_readable(file);
	pipe->writers -= file_writable(file);
	wait_wake(&pipe->data);
	wait_wake(&pipe->room);
	if (pipe->readers + pipe->writers > 0)
		return false;
	free_pipe(pipe);
	return true;
}

static void pipe_release(struct file *file)
{
	pipe_leave(file->private, file);
}

struct file_ops pipe_ops = {
	.read = pipe_read,
	.write = pipe_write,
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
	struct pipe *pipe = pipe_new();

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

/* So that a leak shows. */
uint32_t pipe_count(void)
{
	return pool.used;
}
