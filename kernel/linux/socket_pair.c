/*
 * Socket pairs: socketpair(2) of AF_UNIX and SOCK_STREAM, two files that are connected both ways.
 *
 * Each end has a side of two pipes, and reads from one what the other end writes to it:
 *
 *	one->reader <---- pipe ---- other->writer
 *	one->writer ----- pipe ---> other->reader
 *
 * There are no sockets besides. Programs such as rsync, and python's asyncio, want no more of them.
 * The pipes' files never wait: an end waits itself, so that shutdown(2) can end the wait. The pipes
 * are there as long as one of the ends is, since tasks may wait in their queues. Called by system
 * calls only.
 */
#include <stddef.h>

#include "fs/files.h"
#include "fs/linux/poll.h"
#include "fs/pipe.h"
#include "fs/vfs/vfs.h"
#include "kernel/abi/file.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/socket.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/syscall_file.h"
#include "kernel/process/file_calls.h"
#include "kernel/process/process.h"
#include "kernel/syscall/syscall.h"
#include "mm/pool.h"
#include "mm/user_copy.h"

#define CALL_SOCKETPAIR 8u

#define MSG_KNOWN (MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_CMSG_CLOEXEC)

struct end {
	struct pair *pair;
	struct file *reader, *writer; /* neither of them waits */
	bool receives, sends;	      /* not shut down */
};

struct pair {
	struct end ends[2];
	unsigned open; /* ends */
};

static struct pool pool = POOL_INITIALIZER(struct pair);

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
	int result;

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

static int move(const struct end *end, struct buffer *buffer, bool sends, uint32_t flags)
{
	return sends ? send(end, buffer, flags) : receive(end, buffer, flags);
}

static int socket_read(struct file *file, struct buffer *to, uint64_t offset)
{
	return receive(file->private, to, file->flags);
}

static int socket_write(struct file *file, struct buffer *from, uint64_t offset)
{
	return send(file->private, from, file->flags);
}

static int socket_control(struct file *file, uint32_t command, uint32_t argument)
{
	return pipe_ops.control(((struct end *)file->private)->reader, command, argument);
}

/* A direction that has ended does not wait: a read gets the end, and a write fails. Both together
 * are a hang-up. */
static uint32_t socket_poll(struct file *file, struct poll_table *table)
{
	const struct end *end = file->private;
	struct pipe *in = in_of(end), *out = out_of(end);
	bool in_ended = in->writers == 0 || !end->receives;
	bool out_ended = out->readers == 0 || !end->sends;

	poll_add(table, &in->data);
	poll_add(table, &out->room);
	return (in_ended ? POLLIN | POLLRDHUP : 0) | (pipe_filled(in) > 0 ? POLLIN : 0) |
	       (out_ended || pipe_has_room(out, 0) ? POLLOUT : 0) |
	       (in_ended && out_ended ? POLLHUP : 0);
}

/* Ends a side of a pipe for the other end, and for every task that waits there. The pipe itself,
 * and its queues, remain. */
static void leave(struct pipe *pipe, uint32_t *side)
{
	*side = 0;
	wait_wake(&pipe->data);
	wait_wake(&pipe->room);
}

static void shut(struct end *end, bool receives, bool sends)
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
	pool_free(&pool, pair);
}

static void socket_release(struct file *file)
{
	struct end *end = file->private;

	shut(end, false, false);
	if (--end->pair->open == 0)
		pair_free(end->pair);
}

static const struct file_ops socket_ops = {
	.read = socket_read,
	.write = socket_write,
	.control = socket_control,
	.poll = socket_poll,
	.release = socket_release,
	.is_stream = true,
};

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

static struct file *end_open(struct pair *pair, unsigned number, uint32_t flags)
{
	struct end *end = &pair->ends[number];
	struct file *file = file_create(&socket_ops, end, O_RDWR | flags);

	if (!file)
		return NULL;
	end->pair = pair;
	end->receives = end->sends = true;
	file->inode = inode_hold(end->reader->inode); /* fstat shows a pipe */
	file->forget = vfs_forget_file;
	pair->open++;
	return file;
}

static int pair_create(uint32_t flags, struct file *ends[2])
{
	struct pair *pair = pool_alloc(&pool);
	int error = pair ? create_pipes(pair) : -ENFILE;

	if (error) {
		if (pair)
			pool_free(&pool, pair);
		return error;
	}
	ends[0] = end_open(pair, 0, flags);
	ends[1] = ends[0] ? end_open(pair, 1, flags) : NULL;
	if (ends[1])
		return 0;
	if (ends[0])
		file_release(ends[0]);
	else
		pair_free(pair);
	return -ENFILE;
}

/* Either the program has both descriptors, or nothing stays open. SOCK_NONBLOCK and SOCK_CLOEXEC
 * are open's flags. */
static int socket_pair(uint32_t domain, uint32_t type, uint32_t protocol, uint32_t address)
{
	uint32_t flags = type & (O_NONBLOCK | O_CLOEXEC);
	struct file *ends[2];
	int32_t numbers[2];

	if (domain != AF_UNIX || (type & ~flags) != SOCK_STREAM || protocol > AF_UNIX)
		return -EOPNOTSUPP;
	int error = pair_create(flags & O_NONBLOCK, ends);

	if (error)
		return error;
	for (unsigned i = 0; i < 2; i++)
		numbers[i] = descriptor_add(ends[i], flags);
	if (numbers[0] < 0 || numbers[1] < 0)
		error = -EMFILE;
	else
		error = give(address, numbers, sizeof(numbers));
	for (unsigned i = 0; error && i < 2; i++)
		files_close(current->process->files, numbers[i]); /* refuses what is not a number */
	return error;
}

static int sys_socketpair(struct trap_frame *frame)
{
	return socket_pair(frame->ebx, frame->ecx, frame->edx, frame->esi);
}

/* ---- calls of an end: words are the arguments, the descriptor first ---- */

static int transfer(struct file *file, uint32_t address, uint32_t length, uint32_t flags,
		    bool sends)
{
	struct buffer buffer;

	if (flags & ~MSG_KNOWN)
		return -EOPNOTSUPP;
	if (!buffer_from_call(&buffer, address, length))
		return -EFAULT;
	return move(file->private, &buffer, sends,
		    file->flags | (flags & MSG_DONTWAIT ? O_NONBLOCK : 0));
}

static int sent(int result, uint32_t flags)
{
	return flags & MSG_NOSIGNAL ? result : end_write(result);
}

static int end_send(struct file *file, const uint32_t *words)
{
	return sent(transfer(file, words[1], words[2], words[3], true), words[3]);
}

static int end_receive(struct file *file, const uint32_t *words)
{
	return transfer(file, words[1], words[2], words[3], false);
}

/* The other end has no address. */
static int end_receive_from(struct file *file, const uint32_t *words)
{
	const uint32_t none = 0;
	int result = end_receive(file, words);

	if (result >= 0 && words[4] && give(words[5], &none, sizeof(none)) != 0)
		return -EFAULT;
	return result;
}

/* Vectors after the first do not wait. */
static int move_vectors(struct file *file, const struct linux_message *message, uint32_t flags,
			bool sends)
{
	uint32_t vector[2], moved = 0; /* address, length */

	for (uint32_t i = 0; i < message->count; i++) {
		if (copy_from_user(vector, message->vectors + i * sizeof(vector), sizeof(vector)))
			return moved ? (int)moved : -EFAULT;
		int result = transfer(file, vector[0], vector[1],
				      flags | (moved && !sends ? MSG_DONTWAIT : 0), sends);

		if (result < 0)
			return moved ? (int)moved : result;
		moved += result;
		if ((uint32_t)result < vector[1])
			break;
	}
	return moved;
}

/* Descriptors are not sent: that is refused. */
static int end_send_message(struct file *file, const uint32_t *words)
{
	struct linux_message message;

	if (copy_from_user(&message, words[1], sizeof(message)) != 0)
		return -EFAULT;
	if (message.control_length || message.count > VECTORS_MAX)
		return message.control_length ? -EOPNOTSUPP : -EMSGSIZE;
	return sent(move_vectors(file, &message, words[2], true), words[2]);
}

static int end_receive_message(struct file *file, const uint32_t *words)
{
	struct linux_message message;

	if (copy_from_user(&message, words[1], sizeof(message)) != 0)
		return -EFAULT;
	if (message.count > VECTORS_MAX)
		return -EMSGSIZE;
	int result = move_vectors(file, &message, words[2], false);

	message.name_length = message.control_length = message.flags = 0;
	return result >= 0 && give(words[1], &message, sizeof(message)) != 0 ? -EFAULT : result;
}

static int end_shut_down(struct file *file, const uint32_t *words)
{
	if (words[1] > SHUT_RDWR)
		return -EINVAL;
	shut(file->private, words[1] == SHUT_WR, words[1] == SHUT_RD);
	return 0;
}

/* Gives a value, cut to the room that the word at `length` says, which then is its size. */
static int give_sized(uint32_t address, uint32_t length, const void *value, uint32_t size)
{
	uint32_t room;

	if (copy_from_user(&room, length, sizeof(room)) != 0)
		return -EFAULT;
	if ((int32_t)room < 0)
		return -EINVAL;
	int error = give(address, value, room < size ? room : size);

	return error ? error : give(length, &size, sizeof(size));
}

static int end_name(struct file *file, const uint32_t *words)
{
	const uint16_t family = AF_UNIX;

	return give_sized(words[1], words[2], &family, sizeof(family));
}

/* Options of a socket that have an answer: the others are refused. */
static int end_option(struct file *file, const uint32_t *words)
{
	static const struct {
		uint32_t option, value;
	} known[] = {
		{ SO_TYPE, SOCK_STREAM },     { SO_ERROR, 0 },	    { SO_SNDBUF, PIPE_CAPACITY },
		{ SO_RCVBUF, PIPE_CAPACITY }, { SO_ACCEPTCONN, 0 }, { SO_PROTOCOL, 0 },
		{ SO_DOMAIN, AF_UNIX },
	};

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (words[1] == SOL_SOCKET && words[2] == known[i].option)
			return give_sized(words[3], words[4], &known[i].value, sizeof(uint32_t));
	return -ENOPROTOOPT;
}

/* By the older way's numbers. */
static const struct {
	int (*call)(struct file *file, const uint32_t *words);
	unsigned words;
} end_calls[] = {
	[6] = { end_name, 3 },		[7] = { end_name, 3 },
	[9] = { end_send, 4 },		[10] = { end_receive, 4 },
	[11] = { end_send, 6 },		[12] = { end_receive_from, 6 },
	[13] = { end_shut_down, 2 },	[15] = { end_option, 5 },
	[16] = { end_send_message, 3 }, [17] = { end_receive_message, 3 },
};

/* The file stays until the call ends, even if another thread closes it meanwhile. */
static int call_end(unsigned number, const uint32_t *words)
{
	struct file *file = descriptor_opened(words[0]);

	if (!file || file->ops != &socket_ops)
		return file ? -ENOTSOCK : -EBADF;
	file->references++;
	int result = end_calls[number].call(file, words);

	file_release(file);
	return result;
}

/* The older way: one call for all of sockets, with its arguments in memory. */
static int sys_socketcall(struct trap_frame *frame)
{
	uint32_t words[6], count = 4;

	if (frame->ebx != CALL_SOCKETPAIR) {
		if (frame->ebx >= sizeof(end_calls) / sizeof(end_calls[0]) ||
		    !end_calls[frame->ebx].call)
			return -ENOSYS;
		count = end_calls[frame->ebx].words;
	}
	if (copy_from_user(words, frame->ecx, count * sizeof(words[0])) != 0)
		return -EFAULT;
	return frame->ebx == CALL_SOCKETPAIR ? socket_pair(words[0], words[1], words[2], words[3])
					     : call_end(frame->ebx, words);
}

static int direct(const struct trap_frame *frame, unsigned number)
{
	const uint32_t words[] = { frame->ebx, frame->ecx, frame->edx,
				   frame->esi, frame->edi, frame->ebp };

	return call_end(number, words);
}

CALL(sys_getsockopt, direct(frame, 15))
CALL(sys_getsockname, direct(frame, 6))
CALL(sys_getpeername, direct(frame, 7))
CALL(sys_sendto, direct(frame, 11))
CALL(sys_sendmsg, direct(frame, 16))
CALL(sys_recvfrom, direct(frame, 12))
CALL(sys_recvmsg, direct(frame, 17))
CALL(sys_shutdown, direct(frame, 13))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 102, "socketcall", "dp", sys_socketcall },
	{ 360, "socketpair", "dddp", sys_socketpair },
	{ 365, "getsockopt", "dddpp", sys_getsockopt },
	{ 367, "getsockname", "dpp", sys_getsockname },
	{ 368, "getpeername", "dpp", sys_getpeername },
	{ 369, "sendto", "dpdxpd", sys_sendto },
	{ 370, "sendmsg", "dpx", sys_sendmsg },
	{ 371, "recvfrom", "dpdxpp", sys_recvfrom },
	{ 372, "recvmsg", "dpx", sys_recvmsg },
	{ 373, "shutdown", "dd", sys_shutdown },
};
