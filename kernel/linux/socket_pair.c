/*
 * Socket pairs: socketpair(2) of AF_UNIX and SOCK_STREAM, two files that are connected both ways.
 *
 * Each end has a side of two pipes, and reads from one what the other end writes to it:
 *
 *	one->reader <---- pipe ---- other->writer
 *	one->writer ----- pipe ---> other->reader
 *
 * There are no sockets besides. Programs such as rsync, and python's asyncio, want no more of them.
 * Whether an end waits is a flag of its own file, which each call passes on. shutdown(2) gives up
 * one side; a call that sleeps there keeps it until it ends. Called by system calls only.
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
	struct file *reader, *writer; /* NULL: shut down */
};

static struct pool pool = POOL_INITIALIZER(struct end);

/* `flags` are those of the socket's file, perhaps with more. */
static int move(struct file *side, struct buffer *buffer, bool sends, uint32_t flags)
{
	if (!side)
		return sends ? -EPIPE : 0;
	side->flags = (side->flags & ~O_NONBLOCK) | (flags & O_NONBLOCK);
	side->references++;
	int result = sends ? pipe_ops.write(side, buffer, 0) : pipe_ops.read(side, buffer, 0);

	file_release(side);
	return result;
}

static int socket_read(struct file *file, struct buffer *to, uint64_t offset)
{
	return move(((struct end *)file->private)->reader, to, false, file->flags);
}

static int socket_write(struct file *file, struct buffer *from, uint64_t offset)
{
	return move(((struct end *)file->private)->writer, from, true, file->flags);
}

static int socket_control(struct file *file, uint32_t command, uint32_t argument)
{
	struct end *end = file->private;

	return end->reader ? pipe_ops.control(end->reader, command, argument) : -EINVAL;
}

/* A direction that has ended does not wait: a read gets the end, and a write fails. Both together
 * are a hang-up. */
static uint32_t socket_poll(struct file *file, struct poll_table *table)
{
	struct end *end = file->private;
	uint32_t write = end->writer ? pipe_ops.poll(end->writer, table) : POLLERR;
	uint32_t read = end->reader ? pipe_ops.poll(end->reader, table) : POLLHUP;

	if ((read & POLLHUP) && (write & POLLERR))
		return POLLIN | POLLOUT | POLLHUP;
	return (read & POLLHUP ? POLLIN : read) | (write & POLLERR ? POLLOUT : write);
}

static void shut(struct file **side)
{
	struct file *old = *side;

	*side = NULL;
	if (old)
		file_release(old);
}

static void socket_release(struct file *file)
{
	struct end *end = file->private;

	shut(&end->reader);
	shut(&end->writer);
	pool_free(&pool, end);
}

static const struct file_ops socket_ops = {
	.read = socket_read,
	.write = socket_write,
	.control = socket_control,
	.poll = socket_poll,
	.release = socket_release,
	.is_stream = true,
};

/* An end that owns both sides, which are released without memory for it: then NULL. */
static struct file *end_create(struct file *reader, struct file *writer, uint32_t flags)
{
	struct end *end = pool_alloc(&pool);
	struct file *file = end ? file_create(&socket_ops, end, O_RDWR | flags) : NULL;

	if (file) {
		*end = (struct end){ reader, writer };
		file->inode = inode_hold(reader->inode); /* fstat shows a pipe */
		file->forget = vfs_forget_file;
		return file;
	}
	if (end)
		pool_free(&pool, end);
	file_release(reader);
	file_release(writer);
	return NULL;
}

static int pair_create(uint32_t flags, struct file *ends[2])
{
	struct file *readers[2], *writers[2];
	int error = pipe_create(0, &readers[0], &writers[0]);

	if (error)
		return error;
	error = pipe_create(0, &readers[1], &writers[1]);
	if (error) {
		file_release(readers[0]);
		file_release(writers[0]);
		return error;
	}
	ends[0] = end_create(readers[0], writers[1], flags);
	ends[1] = end_create(readers[1], writers[0], flags);
	for (unsigned i = 0; i < 2; i++)
		if (!ends[i] && ends[!i])
			file_release(ends[!i]);
	return ends[0] && ends[1] ? 0 : -ENFILE;
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
	const struct end *end = file->private;
	struct buffer buffer;

	if (flags & ~MSG_KNOWN)
		return -EOPNOTSUPP;
	if (!buffer_from_call(&buffer, address, length))
		return -EFAULT;
	return move(sends ? end->writer : end->reader, &buffer, sends,
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
	struct end *end = file->private;

	if (words[1] > SHUT_RDWR)
		return -EINVAL;
	if (words[1] != SHUT_WR)
		shut(&end->reader);
	if (words[1] != SHUT_RD)
		shut(&end->writer);
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
