/*
 * Datagrams between sockets of this machine (AF_UNIX, SOCK_DGRAM): a message arrives whole, with
 * the name of its sender, or not at all.
 *
 *	sender		copies its message into pages, finds the receiver, puts it into the queue
 *	receiver	first --- message --- message	at most QUEUE_MAX: then senders wait
 *
 * The receiver is looked up again after each wait, since its socket may be gone. Copies from and to
 * programs sleep: then the message is in no queue. Called by system calls only.
 */
#include "kernel/linux/sockets/sockets.h"

#include <stddef.h>

#include "fs/linux/poll.h"
#include "kernel/abi/poll.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/startup.h"
#include "kernel/linux/files/calls.h"
#include "kernel/process/process.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/task.h"
#include "mm/page_alloc.h"
#include "mm/user_copy.h"

#define QUEUE_MAX 11u
#define ORDER_MAX 5u

#define MSG_OF_SEND    (MSG_DONTWAIT | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC)
#define MSG_OF_RECEIVE (MSG_OF_SEND | MSG_PEEK | MSG_TRUNC | MSG_WAITALL)

struct datagram {
	struct datagram *next;
	struct socket_name from;
	int32_t pid;	/* of the sender */
	unsigned order; /* of its pages */
	bool is_cut;	/* for who received it: there was not room for all of it */
	uint32_t length;
	char bytes[];
};

/* The parts of a message in a program's memory: vectors, or (vectors is 0) only `single`, which may
 * be the kernel's (sendfile). */
struct parts {
	uint32_t vectors, count;
	uint32_t single[2]; /* address, length */
	bool is_kernel;
};

static struct socket *connected;
static struct wait_queue taken; /* wakes when a queue is shorter, or has gone */
static uint32_t times_taken;

static int part_of(const struct parts *parts, uint32_t index, uint32_t part[2])
{
	part[0] = parts->single[0];
	part[1] = parts->single[1];
	if (!parts->vectors)
		return 0;
	return copy_from_user(part, parts->vectors + index * 8, 8) == 0 ? 0 : -EFAULT;
}

static int length_of(const struct parts *parts, uint32_t *length)
{
	uint32_t part[2];
	int error = 0;

	*length = 0;
	for (uint32_t i = 0; i < parts->count && !error; i++) {
		error = part_of(parts, i, part);
		if (!error && __builtin_add_overflow(*length, part[1], length))
			error = -EMSGSIZE;
	}
	return error;
}

static struct datagram *create(uint32_t length)
{
	unsigned order = 0;

	while (order < ORDER_MAX && (PAGE_SIZE << order) - sizeof(struct datagram) < length)
		order++;
	struct datagram *made = page_alloc(order);

	if (made)
		*made = (struct datagram){ .order = order };
	return made;
}

/* Moves up to `length` bytes between the parts and `bytes`; returns how many, or -EFAULT. The
 * program may change the parts' lengths meanwhile. */
static int move(const struct parts *parts, char *bytes, uint32_t length, bool gives)
{
	uint32_t part[2], done = 0;

	for (uint32_t i = 0; i < parts->count && done < length; i++) {
		int error = part_of(parts, i, part);
		uint32_t size = part[1] < length - done ? part[1] : length - done;
		struct buffer memory = { part[0], size, !parts->is_kernel };

		if (!error && size > 0 &&
		    (gives ? buffer_put(&memory, bytes + done, size)
			   : buffer_take(&memory, bytes + done, size)) != (int)size)
			error = -EFAULT;
		if (error)
			return error;
		done += size;
	}
	return done;
}

/* Copies a message out of a program's memory. */
static int take_message(const struct parts *parts, struct datagram **made)
{
	uint32_t length;
	int error = length_of(parts, &length);

	if (!error && length > (PAGE_SIZE << ORDER_MAX) - sizeof(struct datagram))
		error = -EMSGSIZE;
	*made = error ? NULL : create(length);
	if (!*made)
		return error ? error : -ENOMEM;
	int result = move(parts, (*made)->bytes, length, false);

	(*made)->length = result;
	if (result < 0)
		page_free(*made, (*made)->order);
	return result < 0 ? result : 0;
}

/* ---- sending ---- */

/* The socket with this name, or (without a name) the peer, if it takes messages of this one. */
static int find_receiver(struct socket *socket, const struct socket_name *name,
			 struct socket **receiver)
{
	*receiver = socket->peer;
	int error = name->length ? socket_find(name, receiver) : socket->peer ? 0 : -ENOTCONN;

	if (error)
		return error;
	if (!*receiver || !(*receiver)->is_datagram)
		return *receiver ? -EPROTOTYPE : -ECONNREFUSED;
	if (socket->is_shut[SHUT_WR] || (*receiver)->is_shut[SHUT_RD])
		return -EPIPE;
	return (*receiver)->peer && (*receiver)->peer != socket ? -EPERM : 0;
}

static void put(struct socket *receiver, struct datagram *datagram)
{
	struct datagram **at = &receiver->messages;

	while (*at)
		at = &(*at)->next;
	*at = datagram;
	receiver->waiting++;
	wait_wake(&receiver->arrivals);
}

/* Waits until there is room in the receiver's queue, and puts the message there. */
static int deliver(struct socket *socket, const struct socket_name *name, struct datagram *datagram,
		   uint32_t flags)
{
	struct socket *receiver;

	for (;;) {
		uint32_t seen = times_taken;
		int error = find_receiver(socket, name, &receiver);

		if (!error && receiver->waiting < QUEUE_MAX) {
			put(receiver, datagram);
			return 0;
		}
		if (!error)
			error =
			    flags & O_NONBLOCK ? -EAGAIN : wait_event(&taken, times_taken != seen);
		if (error)
			return error;
	}
}

/* `name` is a user address, or 0: then the peer gets it. Returns the message's length. */
static int send(struct file *file, const struct parts *parts, uint32_t name, uint32_t size,
		uint32_t flags)
{
	struct socket *socket = file->private;
	struct socket_name to = { .length = 0 };
	struct datagram *datagram;
	int error = flags & ~MSG_OF_SEND ? -EOPNOTSUPP : 0;

	if (!error && name)
		error = socket_name_from_user(name, size, &to);
	if (!error)
		error = take_message(parts, &datagram);
	if (error)
		return error;
	uint32_t length = datagram->length;

	datagram->from = socket->name;
	datagram->pid = current->process->leader->task->pid;
	error =
	    deliver(socket, &to, datagram, file->flags | (flags & MSG_DONTWAIT ? O_NONBLOCK : 0));
	if (error)
		page_free(datagram, datagram->order);
	return error ? error : (int)length;
}

int datagram_send_to(struct file *file, const uint32_t *words)
{
	return send(file, &(struct parts){ 0, 1, { words[1], words[2] }, false }, words[4],
		    words[5], words[3]);
}

/* Credentials, and nothing more: files are sent through streams only. */
static int check_control(const struct linux_message *message)
{
	struct linux_control header;

	if (message->control_length < sizeof(header))
		return 0;
	if (copy_from_user(&header, message->control, sizeof(header)) != 0)
		return -EFAULT;
	int error = credentials_check(&header, message->control);

	return error == -EINVAL && header.type == SCM_RIGHTS ? -EOPNOTSUPP : error;
}

int datagram_send_message(struct file *file, const uint32_t *words)
{
	struct linux_message message;

	if (copy_from_user(&message, words[1], sizeof(message)) != 0)
		return -EFAULT;
	int error = message.count > VECTORS_MAX ? -EMSGSIZE : check_control(&message);

	if (error)
		return error;
	return send(file, &(struct parts){ message.vectors, message.count, { 0 }, false },
		    message.name, message.name_length, words[2]);
}

/* ---- receiving ---- */

static struct datagram *take(struct socket *socket)
{
	struct datagram *datagram = socket->messages;

	socket->messages = datagram->next;
	socket->waiting--;
	return datagram;
}

static void tell_taken(void)
{
	times_taken++;
	wait_wake(&taken);
}

/* Waits for a message, and takes it out of the queue; none comes if it was shut down. */
static int wait_for(struct file *file, uint32_t flags, struct datagram **datagram)
{
	struct socket *socket = file->private;

	if (flags & ~MSG_OF_RECEIVE)
		return -EOPNOTSUPP;
	while (!socket->messages) {
		if (file->flags & O_NONBLOCK || flags & MSG_DONTWAIT)
			return -EAGAIN;
		int error =
		    wait_event(&socket->arrivals, socket->messages || socket->is_shut[SHUT_RD]);

		if (error || !socket->messages)
			return error;
	}
	*datagram = take(socket);
	return 0;
}

/* One that was only looked at is the first again. */
static void let_go(struct socket *socket, struct datagram *datagram, uint32_t flags)
{
	if (flags & MSG_PEEK) {
		datagram->next = socket->messages;
		socket->messages = datagram;
		socket->waiting++;
		return;
	}
	page_free(datagram, datagram->order);
	tell_taken();
}

/* Returns the bytes that there was room for, or with MSG_TRUNC those that there were. */
static int receive(struct file *file, const struct parts *parts, uint32_t flags,
		   struct datagram *head)
{
	struct datagram *datagram = NULL;
	int error = wait_for(file, flags, &datagram);

	*head = (struct datagram){ .length = 0 };
	if (!datagram)
		return error;
	int length = datagram->length, result = move(parts, datagram->bytes, length, true);

	*head = *datagram;
	head->is_cut = result >= 0 && result < length;
	let_go(file->private, datagram, flags);
	return head->is_cut && flags & MSG_TRUNC ? length : result;
}

int datagram_receive_from(struct file *file, const uint32_t *words)
{
	const struct parts parts = { 0, 1, { words[1], words[2] }, false };
	struct datagram head;
	int result = receive(file, &parts, words[3], &head);

	if (result >= 0 && words[4] && socket_give_name(&head.from, words[4], words[5]) != 0)
		return -EFAULT;
	return result;
}

int datagram_receive_message(struct file *file, const uint32_t *words)
{
	struct linux_message message;
	struct datagram head;

	if (copy_from_user(&message, words[1], sizeof(message)) != 0)
		return -EFAULT;
	if (message.count > VECTORS_MAX)
		return -EMSGSIZE;
	const struct parts parts = { message.vectors, message.count, { 0 }, false };
	int result = receive(file, &parts, words[2], &head);
	uint32_t room = message.name ? message.name_length : 0;

	if (result < 0)
		return result;
	if (give(message.name, &head.from.text,
		 head.from.length < room ? head.from.length : room) != 0)
		return -EFAULT;
	uint32_t control = message.control;

	message.name_length = message.name ? head.from.length : 0;
	message.flags = head.is_cut ? MSG_TRUNC : 0;
	message.control_length = credentials_give(file->private, head.pid, &message);
	message.control = control;
	return give(words[1], &message, sizeof(message)) != 0 ? -EFAULT : result;
}

/* ---- peers ---- */

static void leave_peer(struct socket *socket)
{
	struct socket **at = &connected;

	while (*at && *at != socket)
		at = &(*at)->next_connected;
	if (*at)
		*at = socket->next_connected;
	socket->peer = NULL;
}

static void join_peer(struct socket *socket, struct socket *peer)
{
	leave_peer(socket);
	socket->peer = peer;
	socket->next_connected = connected;
	connected = socket;
}

/* The peer gets what is sent without a name, and only its messages come. A name of no family ends
 * that. */
int datagram_connect(struct file *file, const uint32_t *words)
{
	struct socket *socket = file->private, *peer;
	struct socket_name name = { { .family = AF_UNIX }, 0 };
	int error = socket_name_from_user(words[1], words[2], &name);

	if (error == -EINVAL && name.text.family == AF_UNSPEC) {
		leave_peer(socket);
		return 0;
	}
	if (!error && name.length == sizeof(name.text.family))
		error = -EINVAL;
	if (!error)
		error = find_receiver(socket, &name, &peer);
	if (!error)
		join_peer(socket, peer);
	return error;
}

int datagram_peer_name(struct file *file, const uint32_t *words)
{
	const struct socket *socket = file->private;
	struct socket_name name = { { .family = AF_UNIX }, sizeof(uint16_t) };

	if (socket->peer && socket->peer->name.length)
		name = socket->peer->name;
	return socket->peer ? socket_give_name(&name, words[1], words[2]) : -ENOTCONN;
}

/* Its own directions only: the peer is told when it sends. */
void datagram_shut(struct socket *socket, bool receives, bool sends)
{
	socket->is_shut[SHUT_RD] |= !receives;
	socket->is_shut[SHUT_WR] |= !sends;
	wait_wake(&socket->arrivals);
	tell_taken();
}

void datagram_pair(struct file *one, struct file *other)
{
	join_peer(one->private, other->private);
	join_peer(other->private, one->private);
}

/* ---- open files ---- */

static int datagram_read(struct file *file, struct buffer *to, uint64_t offset)
{
	const struct parts parts = { 0, 1, { to->address, to->length }, !to->is_user };
	struct datagram head;

	if (to->length == 0) /* the message stays */
		return 0;
	return receive(file, &parts, 0, &head);
}

static int datagram_write(struct file *file, struct buffer *from, uint64_t offset)
{
	const struct parts parts = { 0, 1, { from->address, from->length }, !from->is_user };

	return send(file, &parts, 0, 0, 0);
}

static int move_vectors(struct file *file, uint32_t vectors, uint32_t count, bool write)
{
	const struct parts parts = { vectors, count, { 0 }, false };
	struct datagram head;

	return write ? send(file, &parts, 0, 0, 0) : receive(file, &parts, 0, &head);
}

/* How long the first message is. */
static int datagram_control(struct file *file, uint32_t command, uint32_t argument)
{
	const struct datagram *first = ((struct socket *)file->private)->messages;
	uint32_t length = first ? first->length : 0;

	return command == FIONREAD ? give(argument, &length, sizeof(length)) : -ENOTTY;
}

static uint32_t datagram_poll(struct file *file, struct poll_table *table)
{
	struct socket *socket = file->private;
	bool is_full = socket->peer && socket->peer->waiting >= QUEUE_MAX;

	poll_add(table, &socket->arrivals);
	poll_add(table, &taken);
	return (socket->messages ? POLLIN : 0) | (is_full ? 0 : POLLOUT) |
	       (socket->is_shut[SHUT_RD] ? POLLIN | POLLRDHUP : 0) |
	       (socket->is_shut[SHUT_RD] && socket->is_shut[SHUT_WR] ? POLLHUP : 0);
}

/* Those whose peer it was have none. */
static void datagram_release(struct file *file)
{
	struct socket *socket = file->private, *next;
	struct datagram *message;

	while ((message = socket->messages)) {
		socket->messages = message->next;
		page_free(message, message->order);
	}
	leave_peer(socket);
	for (struct socket *each = connected; each; each = next) {
		next = each->next_connected;
		if (each->peer == socket)
			leave_peer(each);
	}
	tell_taken();
	socket_free(socket);
}

const struct file_ops datagram_ops = {
	.read = datagram_read,
	.write = datagram_write,
	.control = datagram_control,
	.poll = datagram_poll,
	.release = datagram_release,
	.is_stream = true,
};

static void datagram_initialize(void)
{
	static const struct message_ops ops = { &datagram_ops, move_vectors };

	message_ops = &ops;
}
STARTUP(datagram_initialize)
