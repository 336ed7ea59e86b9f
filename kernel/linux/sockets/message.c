/*
 * Messages between sockets, in the queue of the receiver.
 *
 *	sender		copies bytes into a message, finds the receiver, puts it into its queue
 *	receiver	first --- message --- message	when it is full, senders wait
 *
 * A stream's sender cuts what it sends into messages of up to 16 KiB. Bytes that fit into the last
 * message of the queue are added to that one, which stays when all of it was received (is_spent): a
 * byte back and forth needs no allocation. A reader gets the bytes of as many messages as it has
 * memory for, up to and with the next one that has files (unix(7)).
 *
 * A copy from or to a program sleeps in a page fault, so meanwhile
 *
 *	a new message		is in no queue; its receiver is looked up afterwards
 *	a stream's last one	may be read and grow, but it is not freed (lock_end)
 *	a reader's first one	may grow, but no other task takes it (`receiving`)
 */

#include "kernel/linux/files/calls.h"
#include "kernel/linux/sockets/sockets.h"

#define DATAGRAMS 11u /* in a queue, as on Linux */
#define ORDER_MAX 5u  /* of a datagram's pages */

/* What fits into one message, besides its files, in bytes. */
#define DATAGRAM_BYTES                                                                             \
	((PAGE_SIZE << ORDER_MAX) - sizeof(struct message) - SCM_MAX * sizeof(struct file *))
#define STREAM_BYTES (PAGE_SIZE * 4 - sizeof(struct message))

/* Others are refused with -EOPNOTSUPP: MSG_OOB, for instance, which a stream of Linux has
 * since 5.15. MSG_MORE and MSG_WAITALL of a datagram change nothing. */
#define MSG_KNOWN                                                                                  \
	(MSG_PEEK | MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_CMSG_CLOEXEC | MSG_WAITALL |      \
	 MSG_TRUNC)

struct wait_queue socket_room;
static uint32_t times_told;

/* ---- messages ---- */

/* How many bytes a message can have at most. */
static uint32_t space_of(const struct message *message)
{
	return (PAGE_SIZE << message->order) - (message->bytes - (const char *)message);
}

/* One block of pages has the structure, the files, and then the bytes. A sender sleeps while it
 * copies into it, so nothing of it is shared before. */
struct message *message_create(uint32_t length, uint32_t files)
{
	uint32_t before = offsetof(struct message, files[files]);
	unsigned order = 0;

	while (order < ORDER_MAX && (PAGE_SIZE << order) - before < length)
		order++;
	struct message *message = page_alloc(order);

	if (!message)
		return NULL;
	message->pid = calling_pid(); /* one by one: a name is long */
	message->order = order;
	message->length = length;
	message->received = message->file_count = 0;
	message->is_spent = false;
	message->bytes = (char *)message + before;
	return message;
}

/* Moves `length` bytes, or as many as the transfer has left, between its memory and `bytes`;
 * returns how many, or -EFAULT. Sleeps. */
static inline __attribute__((always_inline)) int
transfer_move(struct transfer *transfer, char *bytes, uint32_t length, bool gives)
{
	struct buffer *memory = &transfer->memory;
	uint32_t done = 0;

	length = length < transfer->left ? length : transfer->left;
	for (;;) {
		int moved = gives ? buffer_put(memory, bytes + done, length - done)
				  : buffer_take(memory, bytes + done, length - done);

		done += moved;
		if (done == length)
			break;
		if (moved < 0 || memory->length > 0) /* a part of the piece is not mapped */
			return -EFAULT;
		*memory = buffer_of_user(transfer->more->base, transfer->more->length);
		transfer->more++;
	}
	transfer->left -= length;
	return done;
}

/* O_NONBLOCK is the open file's, MSG_DONTWAIT this call's only. */
static bool must_not_wait(const struct socket *socket, uint32_t flags)
{
	return socket->file->flags & O_NONBLOCK || flags & MSG_DONTWAIT;
}

/* ---- queues ---- */

/* What a message uses of a queue's capacity: pages, but each datagram counts as one. */
static uint32_t cost_of(const struct socket *socket, const struct message *message)
{
	return socket->is_datagram ? 1 : 1u << message->order;
}

/* A datagram counts as one, whatever it has; for a listener the connections count that wait. */
bool socket_is_full(const struct socket *socket)
{
	return socket->used >= (socket->is_datagram ? DATAGRAMS : socket->backlog ?: STREAM_PAGES);
}

/* A peer that sends to this socket polls its own queue; others, and those that wait, the common
 * one, since this socket may be gone when they look again. */
void socket_tell_room(struct socket *socket)
{
	times_told++;
	wait_wake(&socket_room);
	if (socket->peer)
		wait_wake(&socket->peer->changed);
}

/* Whether it was full matters only to those that wait: most calls wake nobody. */
struct message *socket_dequeue(struct socket *socket)
{
	struct message *message = socket_first(socket);
	bool was_full = socket_is_full(socket);

	list_remove(&message->link);
	socket->used -= cost_of(socket, message);
	if (was_full)
		socket_tell_room(socket);
	return message;
}

/* At the end; a spent message there has no further use. Does not sleep. */
static void message_enqueue(struct socket *receiver, struct message *message)
{
	if (!list_is_empty(&receiver->messages) && !socket_has_message(receiver))
		message_free(socket_dequeue(receiver));
	list_append(&receiver->messages, &message->link);
	receiver->used += cost_of(receiver, message);
	wait_wake(&receiver->changed);
}

/* One task at a time adds something at the end of a stream's queue. The receiver stays open until
 * unlock_end, which releases it if its program has closed it meanwhile. Both sleep. */
static inline void lock_end(struct socket *receiver)
{
	receiver->file->references++;
	claim_take(&receiver->sending);
}

static inline void unlock_end(struct socket *receiver)
{
	claim_give(&receiver->sending);
	file_release(receiver->file);
}

/* Adds `length` bytes of a transfer to a stream's last message. Returns how many; 0: they must be a
 * message of their own, since there is no room, or it has files or another program's bytes; or
 * -EFAULT. Sleeps. */
static int append_to_last(struct socket *receiver, struct transfer *transfer, uint32_t length)
{
	int32_t pid = calling_pid();
	int moved = 0;

	lock_end(receiver);
	struct message *last = message_at(receiver, receiver->messages.previous);

	if (last && last->is_spent) {
		last->length = last->received = 0;
		last->pid = pid;
	}
	if (last && last->pid == pid && !last->file_count &&
	    length <= space_of(last) - last->length) {
		moved = transfer_move(transfer, last->bytes + last->length, length, false);
		last->length += moved > 0 ? moved : 0;
		last->is_spent &= moved < 0;
		wait_wake(&receiver->changed);
	}
	unlock_end(receiver);
	return moved;
}

/* ---- sending ---- */

/* Why nothing can be sent to the peer; 0: it can. A datagram may have another receiver. */
static inline int stream_error(const struct socket *socket)
{
	if (!socket->is_connected)
		return -ENOTCONN;
	return socket->is_shut[SHUT_WR] && !socket->is_datagram ? -EPIPE : 0;
}

/* In the order in which Linux says them. */
int socket_receiver(struct socket *socket, const struct socket_name *name, struct socket **receiver)
{
	int error = name ? socket_find(name, receiver) : stream_error(socket);

	if (!name)
		*receiver = socket->peer;
	if (!name && (error || !socket->is_datagram))
		return error;
	if (!socket->is_datagram && (socket->is_connected || socket->backlog))
		return socket->is_connected ? -EISCONN : -EINVAL; /* perhaps since a moment ago */
	if (error || !*receiver)
		return error ? error : -ECONNREFUSED;
	if ((*receiver)->is_datagram != socket->is_datagram)
		return -EPROTOTYPE;
	if (!socket->is_datagram)
		return (*receiver)->backlog ? 0 : -ECONNREFUSED;
	if (socket->is_shut[SHUT_WR] || (*receiver)->is_shut[SHUT_RD])
		return -EPIPE;
	return (*receiver)->peer && (*receiver)->peer != socket ? -EPERM : 0;
}

/* Other senders may be faster, and the receiver may be gone: each wake-up begins with looking it
 * up. A stream whose last message is being written to waits for that, so that bytes keep their
 * order.
 */
int socket_deliver(struct socket *socket, const struct socket_name *name, uint32_t flags,
		   struct message *message, struct socket **receiver)
{
	for (;;) {
		uint32_t seen = times_told;
		int error = socket_receiver(socket, name, receiver);

		if (!error && (*receiver)->sending.is_taken) {
			lock_end(*receiver);
			unlock_end(*receiver);
			continue;
		}
		if (!error && !socket_is_full(*receiver)) {
			message_enqueue(*receiver, message);
			return 0;
		}
		if (!error && must_not_wait(socket, flags))
			error = -EAGAIN;
		if (!error)
			error = wait_event(&socket_room, times_told != seen);
		if (error)
			return error;
	}
}

/* Sends `length` bytes of a transfer as one message, and the control data with it; returns how
 * many, or an error. Sleeps. */
static int send_message(struct socket *socket, struct transfer *transfer, uint32_t length)
{
	const struct linux_message *control = transfer->control;
	struct message *message = message_create(length, control ? control_files(control) : 0);
	struct socket *receiver;

	if (!message)
		return -ENOMEM;
	int error = control ? control_send(message, control) : 0;

	if (socket->is_datagram)
		message->from = socket->name;
	if (!error && transfer_move(transfer, message->bytes, length, false) < 0)
		error = -EFAULT;
	if (!error)
		error = socket_deliver(socket, transfer->name, transfer->flags, message, &receiver);
	if (error)
		message_free(message);
	return error ? error : (int)length;
}

/* Whether a stream can send at all matters also if it sends nothing. Control data goes with the
 * first message. What was sent before an error counts: the next call gets the error. */
static int send_stream(struct socket *socket, struct transfer *transfer)
{
	int sent = 0, result = stream_error(socket);

	while (result >= 0 && transfer->left > 0) {
		uint32_t length = transfer->left < STREAM_BYTES ? transfer->left : STREAM_BYTES;

		result = transfer->control ? 0 : append_to_last(socket->peer, transfer, length);
		if (result == 0)
			result = send_message(socket, transfer, length);
		sent += result > 0 ? result : 0;
		transfer->control = NULL;
		if (transfer->left > 0)
			result = result < 0 ? result : stream_error(socket);
	}
	return sent ?: result;
}

/* A datagram is sent whole: if it must wait, all of it waits. */
int socket_send(struct socket *socket, struct transfer *transfer)
{
	if (transfer->flags & ~MSG_KNOWN)
		return -EOPNOTSUPP;
	if (!socket->is_datagram)
		return send_stream(socket, transfer);
	return transfer->left <= DATAGRAM_BYTES ? send_message(socket, transfer, transfer->left)
						: -EMSGSIZE;
}

/* ---- receiving ---- */

/* After shutdown(2) Linux tells a datagram's reader that does not wait to try again. */
int socket_wait(struct socket *socket, uint32_t flags)
{
	if (!socket_has_message(socket) && must_not_wait(socket, flags))
		return socket->is_shut[SHUT_RD] && !socket->is_datagram ? 0 : -EAGAIN;
	return wait_event(&socket->changed, socket_has_message(socket) || socket->is_shut[SHUT_RD]);
}

/* Does the program get more of this message than its bytes? */
static inline bool has_more(const struct message *message, const struct transfer *transfer)
{
	return transfer->name || transfer->control || message->file_count;
}

/* A message of which too much came is cut; one that the program has no memory for is lost. */
static int receive_datagram(struct socket *socket, struct transfer *transfer)
{
	struct message *message = socket_first(socket);
	int length = message->length;
	int moved = transfer_move(transfer, message->bytes, length, true);

	transfer->is_over = true;
	if (moved >= 0 && moved < length) {
		if (transfer->control)
			transfer->control->flags |= MSG_TRUNC;
		moved = transfer->flags & MSG_TRUNC ? length : moved;
	}
	if (has_more(message, transfer))
		control_receive(socket, message, transfer);
	if (!(transfer->flags & MSG_PEEK))
		message_free(socket_dequeue(socket));
	return moved;
}

/* Moves bytes of one message after the other: up to the next files, and with credentials those of
 * one sender. */
static int receive_stream(struct socket *socket, struct transfer *transfer)
{
	bool peeks = transfer->flags & MSG_PEEK, is_read;
	struct message *message = socket_first(socket), *next;
	int done = 0;

	do {
		int moved = transfer_move(transfer, message->bytes + message->received,
					  message->length - message->received, true);

		if (moved < 0)
			return done ? done : moved;
		done += moved;
		transfer->is_over |= message->file_count > 0;
		if (has_more(message, transfer))
			control_receive(socket, message, transfer);
		transfer->pid = message->pid;
		is_read = message->received + moved == message->length; /* which may have grown */
		message->received += peeks ? 0 : moved;
		next = message_at(socket, message->link.next);
		if (is_read && !peeks && next)
			message_free(socket_dequeue(socket));
		else if (is_read && !peeks)
			message->is_spent = true;
		message = next;
	} while (message && is_read && !transfer->is_over &&
		 (!socket->passes_credentials || message->pid == transfer->pid));
	transfer->is_over |= peeks;
	return done;
}

/* A stream gives what is there, and waits only for its first byte; with MSG_WAITALL for all of
 * them, unless files, an error or the end come first. An error of the connection is told when the
 * queue is empty: recv(2). */
int socket_receive(struct socket *socket, struct transfer *transfer)
{
	int result = transfer->flags & ~MSG_KNOWN ? -EOPNOTSUPP : 0, done = 0;

	if (!result && !socket->is_datagram && !socket->is_connected)
		result = -EINVAL;
	if (result || (transfer->left == 0 && !socket->is_datagram))
		return result;
	do {
		if (!socket_has_message(socket)) {
			result = socket_wait(socket, transfer->flags);
			if (result || !socket_has_message(socket)) /* none comes */
				return done ?: result ?: socket_take_error(socket);
		}
		if (socket->receiving.is_taken) { /* look again when that reader is done */
			claim_wait(&socket->receiving);
			continue;
		}
		claim_take(&socket->receiving);
		result = socket->is_datagram ? receive_datagram(socket, transfer)
					     : receive_stream(socket, transfer);
		claim_give(&socket->receiving);
		done += result > 0 ? result : 0;
	} while (result >= 0 && !transfer->is_over &&
		 (done == 0 || (transfer->left > 0 && transfer->flags & MSG_WAITALL)));
	return done ?: result;
}
