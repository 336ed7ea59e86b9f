/*
 * Connections of sockets: two ends that are connected both ways.
 *
 * Each end has a side of two pipes, and reads from one what the other end writes to it:
 *
 *	one->reader <---- pipe ---- other->writer
 *	one->writer ----- pipe ---> other->reader
 *
 * The pipes' files never wait: an end waits itself, so that shutdown(2) can end the wait. The pipes
 * are there as long as one of the ends is, since tasks may wait in their queues. Called by system
 * calls only.
 */
#include "kernel/linux/sockets/sockets.h"

#include <stddef.h>

#include "fs/linux/poll.h"
#include "kernel/abi/file.h"
#include "kernel/abi/poll.h"
#include "kernel/lib/errno.h"
#include "kernel/process/process.h"
#include "mm/page_alloc.h"
#include "mm/pool.h"

static struct pool pairs = POOL_INITIALIZER(struct pair);

static struct pipe *in_of(const struct end *end)
{
	return end->reader->private;
}

static struct pipe *out_of(const struct end *end)
{
	return end->writer->private;
}

/* What is there, also after this end was shut down. `flags` are the socket's, perhaps with more. */
static int receive(const struct end *end, struct buffer *to, uint32_t flags)
{
	struct pipe *in = in_of(end);
	uint32_t limit = end_limit(end);
	int result;

	to->length = to->length < limit ? to->length : limit;
	while ((result = pipe_ops.read(end->reader, to, 0)) == -EAGAIN) {
		if (!end->receives || flags & O_NONBLOCK)
			return end->receives ? -EAGAIN : 0;
		int error = wait_event(&in->data,
				       pipe_filled(in) > 0 || in->writers == 0 || !end->receives);

		if (error)
			return error;
	}
	return result;
}

/* Copies what is in the pipe, and leaves it there. */
static int look(struct pipe *in, struct buffer *to)
{
	int done = 0, moved = 0;

	claim_take(&in->reading);
	uint32_t at = in->taken, left = pipe_filled(in);

	while (left > 0 && to->length > 0 && moved >= 0) {
		uint32_t here = in->ends[at % PIPE_CAPACITY / PAGE_SIZE] - at % PAGE_SIZE;

		if (here == 0) { /* go on in the next page */
			at += -at % PAGE_SIZE;
			continue;
		}
		moved = buffer_put(to, in->ring + at % PIPE_CAPACITY, here < left ? here : left);
		at += moved > 0 ? moved : 0;
		left -= moved > 0 ? moved : 0;
		done += moved > 0 ? moved : 0;
	}
	claim_give(&in->reading);
	return done ? done : moved;
}

int end_take_error(struct end *end)
{
	int error = end->error;

	end->error = 0;
	return error;
}

int end_peek(struct end *end, struct buffer *to, uint32_t flags)
{
	struct pipe *in = in_of(end);

	if (flags & O_NONBLOCK && pipe_filled(in) == 0 && in->writers > 0 && end->receives)
		return -EAGAIN;
	int error =
	    wait_event(&in->data, pipe_filled(in) > 0 || in->writers == 0 || !end->receives);

	return error ?: look(in, to) ?: end_take_error(end);
}

/* Everything, unless an error or a signal comes first; what was sent until then counts. */
static int send(const struct end *end, struct buffer *from, uint32_t flags)
{
	struct pipe *out = out_of(end);
	int done = 0;

	for (;;) {
		int result = end->sends ? pipe_ops.write(end->writer, from, 0) : -EPIPE;

		if (result < 0 && result != -EAGAIN)
			return done ?: result;
		done += result > 0 ? result : 0;
		if (from->length == 0 || flags & O_NONBLOCK)
			return done ?: result;
		int error = wait_event(&out->room, pipe_has_room(out, from->length) ||
						       out->readers == 0 || !end->sends);

		if (error)
			return done ?: error;
	}
}

int end_move(struct end *end, struct buffer *buffer, bool sends, uint32_t flags)
{
	if (sends)
		end->last_pid = current->process->leader->task->pid;
	return sends ? send(end, buffer, flags)
		     : receive(end, buffer, flags) ?: end_take_error(end);
}

/* A direction that has ended does not wait: a read gets the end, and a write fails. Both together
 * are a hang-up. */
uint32_t end_poll(const struct end *end, struct poll_table *table)
{
	struct pipe *in = in_of(end), *out = out_of(end);
	bool in_ended = in->writers == 0 || !end->receives;
	bool out_ended = out->readers == 0 || !end->sends;

	poll_add(table, &in->data);
	poll_add(table, &out->room);
	return (in_ended ? POLLIN | POLLRDHUP : 0) | (pipe_filled(in) > 0 ? POLLIN : 0) |
	       (out_ended || pipe_has_room(out, 0) ? POLLOUT : 0) |
	       (in_ended && out_ended ? POLLHUP : 0) | (end->error ? POLLERR : 0);
}

/* Ends a side of a pipe for the other end, and for every task that waits there. The pipe itself,
 * and its queues, remain. */
static void leave(struct pipe *pipe, uint32_t *side)
{
	*side = 0;
	wait_wake(&pipe->data);
	wait_wake(&pipe->room);
}

void end_shut(struct end *end, bool receives, bool sends)
{
	if (!receives)
		leave(in_of(end), &in_of(end)->readers);
	if (!sends)
		leave(out_of(end), &out_of(end)->writers);
	end->receives &= receives;
	end->sends &= sends;
}

/* The files leave their pipes with the last end. */
static void pair_free(struct pair *pair)
{
	for (unsigned i = 0; i < 2; i++)
		in_of(&pair->ends[i])->readers = in_of(&pair->ends[i])->writers = 1;
	for (unsigned i = 0; i < 2; i++) {
		file_release(pair->ends[i].reader);
		file_release(pair->ends[i].writer);
	}
	pool_free(&pairs, pair);
}

void end_close(struct end *end)
{
	if (pipe_filled(in_of(end)) > 0)
		end_other(end)->error = -ECONNRESET;
	end_shut(end, false, false);
	end_drop_files(end);
	if (--end->pair->open == 0)
		pair_free(end->pair);
}

/* Both pipes; without memory none. */
static int create_pipes(struct pair *pair)
{
	struct end *ends = pair->ends;
	int error = pipe_create(O_NONBLOCK, &ends[0].reader, &ends[1].writer);

	if (error)
		return error;
	error = pipe_create(O_NONBLOCK, &ends[1].reader, &ends[0].writer);
	if (error) {
		file_release(ends[0].reader);
		file_release(ends[1].writer);
	}
	return error;
}

struct pair *pair_create(void)
{
	struct pair *pair = pool_alloc(&pairs);

	if (!pair)
		return NULL;
	if (create_pipes(pair) != 0) {
		pool_free(&pairs, pair);
		return NULL;
	}
	for (struct end *end = pair->ends; end < pair->ends + 2; end++) {
		end->pair = pair;
		end->receives = end->sends = true;
		end->pid = current->process->leader->task->pid;
	}
	pair->open = 2;
	return pair;
}
