/*
 * Open sockets, and how they are connected: by socketpair(2), or by name.
 *
 *	one task	bind "/tmp/s", listen, accept  <-- queue <-- the connection's other end
 *	another		connect "/tmp/s"  ---- makes that end, and sends it as a file
 *
 * connect does not wait for accept, unless the queue is full. A socket that is closed takes its own
 * queue with it, but not what it has sent: that is in the queue of its peer.
 */

#include "kernel/abi/poll.h"
#include "kernel/linux/files/calls.h"
#include "kernel/linux/sockets/sockets.h"

#define BACKLOG_MAX 128u /* connections that wait, whatever listen asks for */

static struct pool socket_pool = POOL_INITIALIZER(struct socket);

/* ---- connections ---- */

/* What the socket will say of its peer, even after that was closed. */
static void learn_peer(struct socket *socket, struct socket *peer)
{
	socket->peer = peer;
	socket->is_connected = true;
	socket->peer_name = peer->name;
	socket->peer_pid = peer->pid;
	wait_wake(&socket->changed);
}

/* For socketpair(2), and for a connection and its other end. */
void socket_join(struct socket *one, struct socket *other)
{
	learn_peer(one, other);
	learn_peer(other, one);
}

/* listen(2): one more connection than the program says may wait, as on Linux. A second call changes
 * how many; what waits already stays. SO_PEERCRED of those that connect is who has called this. */
int socket_listen(struct socket *socket, const struct trap_frame *frame)
{
	if (socket->is_datagram)
		return -EOPNOTSUPP;
	if (!socket->name.length || socket->is_connected)
		return -EINVAL;
	socket->backlog = frame->ecx < BACKLOG_MAX ? frame->ecx + 1 : BACKLOG_MAX;
	socket->pid = calling_pid();
	return 0;
}

/* A connection is two sockets that are each other's peers; the program that connects has one of
 * them. Sends the other end of a connection, which is like the listener, to it. The message has the
 * only reference to that end's file until accept(2) takes it: if the listener is closed before, the
 * file goes with the queue, and the peer learns of it as of any close. */
static int connect_stream(struct socket *socket, const struct socket_name *name)
{
	struct file *file = socket_file(false, 0);
	struct message *message = file ? message_create(0, 1) : NULL;
	struct socket *listener;

	if (!message) {
		file_drop(file);
		return -ENOMEM;
	}
	message_add_file(message, file);
	int error = socket_deliver(socket, name, 0, message, &listener);

	if (error) {
		message_free(message);
		return error;
	}
	struct socket *end = file->private;

	end->is_embryo = true;
	end->name = listener->name;
	end->pid = listener->pid;
	socket->pid = calling_pid();
	socket_join(socket, end);
	return 0;
}

/* A datagram's peer gets what is sent without a name, and only its messages come. A name of no
 * family ends that. */
static int connect_datagram(struct socket *socket, const struct socket_name *name)
{
	struct socket *peer;
	int error = socket_receiver(socket, name, &peer);

	if (!error)
		learn_peer(socket, peer);
	return error;
}

/* What the peer was called stays known (getpeername(2)). A datagram's socket can be connected
 * again; a stream's has ended. */
static void forget_peer(struct socket *socket)
{
	socket->peer = NULL;
	socket->is_connected &= !socket->is_datagram;
	wait_wake(&socket->changed);
}

/* connect(2). A stream connects once, and does not wait for accept; -EAGAIN if its socket must not
 * wait for room in the listener's queue. A name of no bytes after its family would be one that bind
 * chooses: nobody has it. */
int socket_connect(struct socket *socket, const struct trap_frame *frame)
{
	struct socket_name name = { { .family = AF_UNIX }, 0 };
	int error = socket_name_from_user(frame->ecx, frame->edx, &name);

	if (error == -EINVAL && socket->is_datagram && name.text.family == AF_UNSPEC) {
		forget_peer(socket);
		return 0;
	}
	if (!error && name.length == sizeof(name.text.family))
		error = -EINVAL;
	if (error)
		return error;
	return socket->is_datagram ? connect_datagram(socket, &name)
				   : connect_stream(socket, &name);
}

/* accept4(2). Of the listener's flags the new socket inherits none, only SO_PASSCRED (unix(7)).
 * The file was made by the one that connects; here it gets its flags, and a descriptor.
 * If the name cannot be given, the connection is lost, as on Linux. */
int socket_accept(struct socket *socket, const struct trap_frame *frame)
{
	if (socket->is_datagram)
		return -EOPNOTSUPP;
	if (!socket->backlog || frame->esi & ~(O_NONBLOCK | O_CLOEXEC))
		return -EINVAL;
	int error = socket_wait(socket, 0);

	if (error)
		return error;
	struct message *message = socket_dequeue(socket);
	struct file *file = message_take_file(message, 0);
	struct socket *end = file->private;
	const struct socket_name name = end->peer_name;

	message->file_count = 0;
	message_free(message);
	end->is_embryo = false;
	end->passes_credentials = socket->passes_credentials;
	file->flags |= frame->esi & O_NONBLOCK;
	int descriptor = descriptor_add(file, frame->esi);

	error = descriptor >= 0 && frame->ecx ? socket_give_name(&name, frame->ecx, frame->edx) : 0;
	if (error)
		files_close(current->process->files, descriptor);
	return error ? error : descriptor;
}

/* shutdown(2): what is in the queue can still be read. A stream's peer is told at once, a
 * datagram's when it sends. All that sleep in a read or write of this socket look again. */
int socket_shut(struct socket *socket, const struct trap_frame *frame)
{
	bool ends_in = frame->ecx != SHUT_WR, ends_out = frame->ecx != SHUT_RD;

	if (frame->ecx > SHUT_RDWR)
		return -EINVAL;
	if (!socket->is_datagram && !socket->is_connected)
		return -ENOTCONN;
	socket->is_shut[SHUT_RD] |= ends_in;
	socket->is_shut[SHUT_WR] |= ends_out;
	if (!socket->is_datagram && socket->peer) {
		socket->peer->is_shut[SHUT_WR] |= ends_in;
		socket->peer->is_shut[SHUT_RD] |= ends_out;
	}
	wait_wake(&socket->changed);
	socket_tell_room(socket);
	return 0;
}

/* ---- open files ---- */

/* read(2) and write(2) are recv and send without flags. A read of 0 bytes does nothing: a datagram
 * stays. A write of 0 bytes sends an empty datagram. */
static int socket_read(struct file *file, struct buffer *to, uint64_t offset)
{
	struct transfer transfer = { .memory = *to, .left = to->length };

	return to->length ? socket_receive(file->private, &transfer) : 0;
}

static int socket_write(struct file *file, struct buffer *from, uint64_t offset)
{
	struct transfer transfer = { .memory = *from, .left = from->length };

	return socket_send(file->private, &transfer);
}

/* For readv and writev: all pieces are one message, or one part of the stream. */
int socket_move_vectors(struct file *file, const struct vectors *vectors, bool write)
{
	struct transfer transfer = { .more = vectors->list, .left = vectors->total };

	return write ? socket_send(file->private, &transfer)
		     : socket_receive(file->private, &transfer);
}

/* FIONREAD (unix(7)): the bytes that are there, of a datagram those of the first. -EINVAL for a
 * listener, whose messages have none. */
static int socket_control(struct file *file, uint32_t command, uint32_t argument)
{
	const struct socket *socket = file->private;
	uint32_t bytes = 0;

	if (command != FIONREAD)
		return -ENOTTY;
	if (socket->backlog)
		return -EINVAL;
	list_for_each(const struct message, each, &socket->messages, link) {
		bytes += each->length - each->received;
		if (socket->is_datagram)
			break;
	}
	return give(argument, &bytes, sizeof(bytes));
}

/* What poll(2) says: a listener is readable when a connection waits, a stream that is not connected
 * has hung up. A datagram's peer may be full because of others, so all wait for all (socket_room).
 * A direction that has ended does not wait: a read gets the end, and a write fails. Both together
 * are a hang-up. */
static uint32_t socket_poll(struct file *file, struct poll_table *table)
{
	const struct socket *socket = file->private;
	const bool *is_shut = socket->is_shut;
	bool is_full = socket->peer && socket_is_full(socket->peer);

	poll_add(table, &((struct socket *)file->private)->changed);
	if (socket->is_datagram)
		poll_add(table, &socket_room);
	if (socket->backlog)
		return socket_has_message(socket) ? POLLIN : 0;
	if (!socket->is_datagram && !socket->is_connected)
		return POLLOUT | POLLHUP;
	return (socket_has_message(socket) ? POLLIN : 0) |
	       (is_full && !is_shut[SHUT_WR] ? 0 : POLLOUT) |
	       (is_shut[SHUT_RD] ? POLLIN | POLLRDHUP : 0) |
	       (is_shut[SHUT_RD] && is_shut[SHUT_WR] ? POLLHUP : 0) | (socket->error ? POLLERR : 0);
}

/* A connection ends with one of its sockets. Its peer hears (ECONNRESET, once) of bytes that nobody
 * has read. */
static void leave_peers(const struct socket *socket)
{
	list_for_each(struct socket, each, &open_sockets, link) {
		if (each->peer != socket)
			continue;
		if (!each->is_datagram) {
			each->is_shut[SHUT_RD] = each->is_shut[SHUT_WR] = true;
			if (socket_has_message(socket) || socket->is_embryo)
				each->error = -ECONNRESET;
		}
		forget_peer(each);
	}
}

/* Nobody finds the socket from the first step on; what follows may sleep. */
static void socket_release(struct file *file)
{
	struct socket *socket = file->private;

	list_remove(&socket->link);
	leave_peers(socket);
	socket->peer = NULL;
	socket_tell_room(socket);
	while (!list_is_empty(&socket->messages))
		message_free(socket_dequeue(socket));
	inode_put(socket->inode);
	pool_free(&socket_pool, socket);
	socket_collect();
}

const struct file_ops socket_ops = {
	.read = socket_read,
	.write = socket_write,
	.control = socket_control,
	.poll = socket_poll,
	.release = socket_release,
	.is_stream = true,
};

/* All sockets have one inode, which only fstat(2) shows: on Linux there is a file system for them.
 * The path that a socket is bound to has another one. */
struct file *socket_file(bool is_datagram, uint32_t flags)
{
	static struct anonymous all;
	struct file *file = file_of_pool(&all, &socket_ops, &socket_pool, O_RDWR | flags);

	if (!file)
		return NULL;
	all.inode.mode = S_IFSOCK | 0777;
	struct socket *socket = file->private;

	socket->file = file;
	socket->messages = (struct list)LIST_EMPTY(socket->messages);
	socket->is_datagram = is_datagram;
	socket->pid = calling_pid();
	list_append(&open_sockets, &socket->link);
	return file;
}
