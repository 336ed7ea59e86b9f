/*
 * Socket pairs: socketpair(2) of AF_UNIX and SOCK_STREAM, two files that are connected both ways.
 *
 * Each end has a side of two pipes, and reads from one what the other end writes to it:
 *
 *	one->reader <---- pipe ---- other->writer
 *	one->writer ----- pipe ---> other->reader
 *
 * There are no sockets besides. Programs such as rsync want no more of them. Whether an end waits
 * is a flag of its own file, which each call passes on. Called by system calls only.
 */
#include <stddef.h>

#include "fs/files.h"
#include "fs/linux/poll.h"
#include "fs/pipe.h"
#include "fs/vfs/vfs.h"
#include "kernel/abi/poll.h"
#include "kernel/lib/errno.h"
#include "kernel/process/file_calls.h"
#include "kernel/process/process.h"
#include "kernel/syscall/syscall.h"
#include "mm/pool.h"
#include "mm/user_copy.h"

#define AF_UNIX		1u
#define SOCK_STREAM	1u
#define CALL_SOCKETPAIR 8u

struct end {
	struct file *reader, *writer;
};

static struct pool pool = POOL_INITIALIZER(struct end);

static struct file *waiting_as(struct file *side, const struct file *socket)
{
	side->flags = (side->flags & ~O_NONBLOCK) | (socket->flags & O_NONBLOCK);
	return side;
}

static int socket_read(struct file *file, struct buffer *to, uint64_t offset)
{
	struct end *end = file->private;

	return pipe_ops.read(waiting_as(end->reader, file), to, offset);
}

static int socket_write(struct file *file, struct buffer *from, uint64_t offset)
{
	struct end *end = file->private;

	return pipe_ops.write(waiting_as(end->writer, file), from, offset);
}

static int socket_control(struct file *file, uint32_t command, uint32_t argument)
{
	struct end *end = file->private;

	return pipe_ops.control(end->reader, command, argument);
}

/* Without the other end a write would not wait: it fails. */
static uint32_t socket_poll(struct file *file, struct poll_table *table)
{
	struct end *end = file->private;
	uint32_t write = pipe_ops.poll(end->writer, table);

	return pipe_ops.poll(end->reader, table) | (write & POLLERR ? POLLOUT : write);
}

static void socket_release(struct file *file)
{
	struct end *end = file->private;

	file_release(end->reader);
	file_release(end->writer);
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
		files_close(current->process->files, numbers[i]); /* refuses what is no number */
	return error;
}

static int sys_socketpair(struct trap_frame *frame)
{
	return socket_pair(frame->ebx, frame->ecx, frame->edx, frame->esi);
}

/* The older way: one call for all of sockets, with its arguments in memory. */
static int sys_socketcall(struct trap_frame *frame)
{
	uint32_t words[4];

	if (frame->ebx != CALL_SOCKETPAIR)
		return -ENOSYS;
	if (copy_from_user(words, frame->ecx, sizeof(words)) != 0)
		return -EFAULT;
	return socket_pair(words[0], words[1], words[2], words[3]);
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 102, "socketcall", "dp", sys_socketcall },
	{ 360, "socketpair", "dddp", sys_socketpair },
};
