/*
 * Open sockets (AF_UNIX): streams are connected by socketpair(2), or find each other by name: a
 * path, whose inode is of the type socket, or any bytes after a NUL (abstract; they are in no
 * directory).
 *
 *	one task	bind "/tmp/s", listen, accept  <-- queue <-- pair
 *	another		connect "/tmp/s"  ---- makes a pair, and has its first end
 *
 * connect does not wait for accept, unless the queue is full. Called by system calls only.
 */
#include "kernel/linux/sockets/sockets.h"

#include <stddef.h>

#include "fs/files.h"
#include "fs/linux/poll.h"
#include "fs/vfs/path.h"
#include "fs/vfs/vfs.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/stat.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/files/calls.h"
#include "kernel/process/process.h"
#include "kernel/report/printk.h"

#define BACKLOG_MAX 128u

static struct pool pool = POOL_INITIALIZER(struct socket);
static struct socket *named;
static struct wait_queue accepted; /* wakes when a queue is shorter, or has gone */
static uint32_t times_accepted;

static bool is_path(const struct socket_name *name)
{
	return name->text.path[0] != '\0';
}

int socket_name_from_user(uint32_t address, uint32_t length, struct socket_name *name)
{
	if (length < sizeof(name->text.family) || length > SOCKET_NAME_MAX)
		return -EINVAL;
	*name = (struct socket_name){ .length = length };
	if (copy_from_user(&name->text, address, length) != 0)
		return -EFAULT;
	if (is_path(name))
		name->length =
		    offsetof(struct linux_socket_name, path) + strlen(name->text.path) + 1;
	return name->text.family == AF_UNIX ? 0 : -EINVAL;
}

static struct inode *here(void)
{
	return vfs_working_directory(current->process->files);
}

/* The socket that has an abstract name, or the inode of the other kind; or NULL. */
static struct socket *find(const struct socket_name *name, const struct inode *inode)
{
	struct socket *each = named;

	while (each && !(inode ? each->inode == inode
			       : each->name.length == name->length &&
				     memcmp(&each->name.text, &name->text, name->length) == 0))
		each = each->next;
	return each;
}

/* An abstract name that is not in use. */
static void choose(struct socket_name *name)
{
	static uint32_t last;

	do
		name->length = sizeof(name->text.family) + 1 +
			       snprintk(name->text.path + 1, 9, "%05x", ++last);
	while (find(name, NULL));
}

static int make_inode(const char *path, struct inode **inode)
{
	uint32_t mode = S_IFSOCK | (0777 & ~current->process->files->umask);
	int error = vfs_make(here(), path, mode, 0);

	return error ? error : path_find(here(), path, PATH_NAME, inode);
}

int socket_bind(struct file *file, const uint32_t *words)
{
	struct socket *socket = file->private;
	struct inode *inode = NULL;
	struct socket_name name;
	int error = socket_name_from_user(words[1], words[2], &name);

	if (!error && name.length == sizeof(name.text.family))
		choose(&name);
	if (!error && is_path(&name))
		error = make_inode(name.text.path, &inode);
	else if (!error && find(&name, NULL))
		error = -EADDRINUSE;
	if (!error && (socket->name.length || socket->end)) { /* it may have got one meanwhile */
		inode_put(inode);
		error = -EINVAL;
	}
	if (error)
		return error == -EEXIST ? -EADDRINUSE : error;
	socket->name = name;
	socket->inode = inode;
	socket->next = named;
	named = socket;
	return 0;
}

int socket_listen(struct file *file, const uint32_t *words)
{
	struct socket *socket = file->private;

	if (!socket->name.length || socket->end)
		return -EINVAL;
	socket->backlog = words[1] < BACKLOG_MAX ? words[1] + 1 : BACKLOG_MAX;
	socket->pid = current->process->leader->task->pid;
	return 0;
}

int socket_find(const struct socket_name *name, struct socket **found)
{
	struct inode *inode = NULL;
	int error = is_path(name) ? path_find(here(), name->text.path, PATH_FOLLOW, &inode) : 0;

	if (error)
		return error;
	*found = find(name, inode);
	inode_put(inode);
	return 0;
}

static int find_listener(const struct socket_name *name, struct socket **found)
{
	int error = socket_find(name, found);

	if (error)
		return error;
	if (*found && (*found)->is_datagram)
		return -EPROTOTYPE;
	return *found && (*found)->backlog ? 0 : -ECONNREFUSED;
}

/* Gives the socket one end of a pair, and puts the other into the queue. */
static int join(struct socket *socket, struct socket *listener)
{
	struct pair *pair = pair_create(), **at = &listener->first;

	if (!pair)
		return -ENOMEM;
	pair->name = listener->name;
	pair->ends[1].pid = listener->pid;
	while (*at)
		at = &(*at)->next;
	*at = pair;
	listener->waiting++;
	wait_wake(&listener->arrivals);
	socket->end = &pair->ends[0];
	wait_wake(&socket->arrivals); /* who polls joins the queues of the end */
	return 0;
}

/* Finding a path may sleep: what holds of the socket is looked at afterwards. */
int socket_connect(struct file *file, const uint32_t *words)
{
	struct socket *socket = file->private, *listener;
	struct socket_name name;
	int error = socket_name_from_user(words[1], words[2], &name);

	if (!error && name.length == sizeof(name.text.family))
		error = -EINVAL;
	while (!error) {
		uint32_t seen = times_accepted;

		error = find_listener(&name, &listener);
		if (socket->end || socket->backlog)
			return socket->end ? -EISCONN : -EINVAL;
		if (!error && listener->waiting < listener->backlog)
			return join(socket, listener);
		if (!error && file->flags & O_NONBLOCK)
			error = -EAGAIN;
		if (!error)
			error = wait_event(&accepted, times_accepted != seen);
	}
	return error;
}

static struct pair *next_of(struct socket *socket)
{
	struct pair *pair = socket->first;

	socket->first = pair->next;
	socket->waiting--;
	times_accepted++;
	wait_wake(&accepted);
	return pair;
}

static void forget_name(struct socket *socket)
{
	struct socket **at = &named;

	while (*at && *at != socket)
		at = &(*at)->next;
	if (*at)
		*at = socket->next;
	while (socket->first) {
		struct pair *pair = next_of(socket);

		pair->ends[0].error = -ECONNRESET;
		end_close(&pair->ends[1]);
	}
	inode_put(socket->inode);
}

/* ---- open files ---- */

/* Files that came with the bytes are dropped if the caller does not ask for them. */
static int socket_read(struct file *file, struct buffer *to, uint64_t offset)
{
	struct end *end = end_of(file);
	int result = end ? end_move(end, to, false, file->flags) : -EINVAL;

	if (result > 0)
		end_receive_files(end, NULL, 0);
	return result;
}

static int socket_write(struct file *file, struct buffer *from, uint64_t offset)
{
	return end_of(file) ? end_move(end_of(file), from, true, file->flags) : -ENOTCONN;
}

static int socket_control(struct file *file, uint32_t command, uint32_t argument)
{
	struct end *end = end_of(file);

	if (!end)
		return command == FIONREAD ? -EINVAL : -ENOTTY;
	return pipe_ops.control(end->reader, command, argument);
}

static uint32_t socket_poll(struct file *file, struct poll_table *table)
{
	struct socket *socket = file->private;

	if (socket->end)
		return end_poll(socket->end, table);
	poll_add(table, &socket->arrivals);
	return socket->backlog == 0 ? POLLOUT | POLLHUP : socket->first ? POLLIN : 0;
}

void socket_free(struct socket *socket)
{
	socket_list_remove(socket);
	forget_name(socket);
	if (socket->end)
		end_close(socket->end);
	pool_free(&pool, socket);
	socket_collect();
}

static void socket_release(struct file *file)
{
	socket_free(file->private);
}

const struct file_ops socket_ops = {
	.read = socket_read,
	.write = socket_write,
	.control = socket_control,
	.poll = socket_poll,
	.release = socket_release,
	.is_stream = true,
};

struct file *socket_file(const struct file_ops *ops, uint32_t flags)
{
	static struct anonymous all;
	struct file *file = file_of_pool(&all, ops, &pool, O_RDWR | flags);

	all.inode.mode = S_IFSOCK | 0777;
	if (!file)
		return NULL;
	((struct socket *)file->private)->is_datagram = ops != &socket_ops;
	((struct socket *)file->private)->file = file;
	socket_list_add(file->private, all.inode.number);
	return file;
}

/* ---- accepting ---- */

int give_sized(uint32_t address, uint32_t length, const void *value, uint32_t size)
{
	uint32_t room;

	if (copy_from_user(&room, length, sizeof(room)) != 0)
		return -EFAULT;
	if ((int32_t)room < 0)
		return -EINVAL;
	int error = give(address, value, room < size ? room : size);

	return error ? error : give(length, &size, sizeof(size));
}

int socket_give_name(const struct socket_name *name, uint32_t address, uint32_t length)
{
	return give_sized(address, length, &name->text, name->length);
}

/* The other end has no name. */
static int give_no_name(uint32_t address, uint32_t length)
{
	static const struct socket_name none = { { .family = AF_UNIX }, sizeof(uint16_t) };

	return address ? socket_give_name(&none, address, length) : 0;
}

int socket_accept(struct file *file, const uint32_t *words)
{
	struct socket *socket = file->private;

	if (!socket->backlog || words[3] & ~(O_NONBLOCK | O_CLOEXEC))
		return -EINVAL;
	if (file->flags & O_NONBLOCK && !socket->first)
		return -EAGAIN;
	int error = wait_event(&socket->arrivals, socket->first);

	if (error)
		return error;
	struct end *end = &next_of(socket)->ends[1];
	struct file *made = socket_file(&socket_ops, words[3] & O_NONBLOCK);

	if (!made) {
		end_close(end);
		return -ENFILE;
	}
	((struct socket *)made->private)->end = end;
	((struct socket *)made->private)->passes_credentials = socket->passes_credentials;
	int descriptor = descriptor_add(made, words[3]);

	error = descriptor < 0 ? 0 : give_no_name(words[1], words[2]);
	if (error)
		files_close(current->process->files, descriptor);
	return error ? error : descriptor;
}
