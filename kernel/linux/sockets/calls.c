/*
 * System calls of sockets. i386 has two ways to each: socketcall(2), one call with a number and the
 * address of the arguments, and since Linux 4.3 a call of its own. Both end in a function of the
 * socket and its arguments; words[0] is the descriptor.
 *
 * All that send end in socket_send, and all that receive in socket_receive: they differ in where a
 * transfer's memory, name and control data are. send(2), recv(2), getsockopt(2), unix(7).
 */
#include <stddef.h>

#include "fs/files.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/files/calls.h"
#include "kernel/linux/sockets/sockets.h"
#include "kernel/process/process.h"

/* ---- sending and receiving ---- */

/* A send to a broken stream raises SIGPIPE, unless with MSG_NOSIGNAL; a datagram never does. */
static int end_send(const struct socket *socket, int result, uint32_t flags)
{
	return flags & MSG_NOSIGNAL || socket->is_datagram ? result : end_write(result);
}

/* A transfer of one piece of the program's memory, words[1] and its length words[2]. */
static int transfer_from_user(const uint32_t *words, struct transfer *transfer)
{
	struct buffer memory;

	if (!buffer_from_call(&memory, words[1], words[2]))
		return -EFAULT;
	*transfer = transfer_of(memory, NULL, memory.length, words[3]);
	return 0;
}

/* Sends to the socket whose name is at a user address, or (0) to the peer. A stream has its peer,
 * and no other. */
static int send_transfer(struct socket *socket, struct transfer *transfer, uint32_t address,
			 uint32_t length)
{
	struct socket_name name;
	int error = 0;

	if (address && socket->is_datagram) {
		error = socket_name_from_user(address, length, &name);
		transfer->name = &name;
	} else if (address && length) {
		error = socket->is_connected ? -EISCONN : -EOPNOTSUPP;
	}
	return error ? error : end_send(socket, socket_send(socket, transfer), transfer->flags);
}

/* sendto(2), and send(2) with no name. */
static int send_to(struct socket *socket, const uint32_t *words)
{
	struct transfer transfer;

	return transfer_from_user(words, &transfer)
		   ?: send_transfer(socket, &transfer, words[4], words[5]);
}

/* The name has the length 0 if the sender has none. */
static int receive_from(struct socket *socket, const uint32_t *words)
{
	struct transfer transfer;
	struct socket_name from;
	int result = transfer_from_user(words, &transfer);

	from.length = 0;
	transfer.name = words[4] ? &from : NULL;
	if (!result)
		result = socket_receive(socket, &transfer);
	if (result >= 0 && words[4] && give_sized(words[4], words[5], &from.text, from.length) != 0)
		return -EFAULT;
	return result;
}

/* struct msghdr, and the memory that it names; vectors_release follows in any case. */
static int message_from_user(uint32_t address, struct linux_message *message,
			     struct vectors *vectors)
{
	if (copy_from_user(message, address, sizeof(*message)) != 0)
		return -EFAULT;
	if (message->count > VECTORS_MAX)
		return -EMSGSIZE;
	return vectors_from_user(vectors, message->vectors, message->count);
}

/* The first piece is empty: the vectors follow it. */
static struct transfer transfer_of_message(struct linux_message *message,
					   const struct vectors *vectors, uint32_t flags)
{
	struct transfer transfer =
	    transfer_of(buffer_of_user(0, 0), vectors->list, vectors->total, flags);

	transfer.control = message;
	return transfer;
}

/* sendmsg(2). */
static int send_message_call(struct socket *socket, const uint32_t *words)
{
	struct linux_message message;
	struct vectors vectors CLEANUP(vectors_release) = { .list = NULL };
	int error = message_from_user(words[1], &message, &vectors);
	struct transfer transfer = transfer_of_message(&message, &vectors, words[2]);

	return error ?: send_transfer(socket, &transfer, message.name, message.name_length);
}

/* The structure's lengths become those of what was received. */
static int receive_message_call(struct socket *socket, const uint32_t *words)
{
	struct linux_message message;
	struct vectors vectors CLEANUP(vectors_release) = { .list = NULL };
	int result = message_from_user(words[1], &message, &vectors);
	struct transfer transfer = transfer_of_message(&message, &vectors, words[2]);
	struct socket_name from;
	uint32_t control = message.control, room = message.name ? message.name_length : 0;

	from.length = message.flags = 0;
	transfer.name = message.name ? &from : NULL;
	if (!result)
		result = socket_receive(socket, &transfer);
	if (result < 0)
		return result;
	if (give(message.name, &from.text, from.length < room ? from.length : room) != 0)
		return -EFAULT;
	message.name_length = from.length;
	message.control_length = message.control - control;
	message.control = control;
	return give(words[1], &message, sizeof(message)) != 0 ? -EFAULT : result;
}

/* ---- names and options ---- */

/* getsockname(2): of an accepted socket it is the listener's name. */
static int give_own_name(struct socket *socket, const uint32_t *words)
{
	return socket_give_name(&socket->name, words[1], words[2]);
}

/* getpeername(2), also when the peer has been closed. */
static int give_peer_name(struct socket *socket, const uint32_t *words)
{
	return socket->is_connected ? socket_give_name(&socket->peer_name, words[1], words[2])
				    : -ENOTCONN;
}

/* As give_sized, but says how much of the value the program has got. */
static int give_option(const uint32_t *words, const void *value, uint32_t size)
{
	int32_t room;

	if (copy_from_user(&room, words[4], sizeof(room)) != 0)
		return -EFAULT;
	size = room >= 0 && (uint32_t)room < size ? (uint32_t)room : size;
	return give_sized(words[3], words[4], value, size);
}

/* Options of a socket that have an answer: the others are refused. */
static int get_socket_option(struct socket *socket, const uint32_t *words)
{
	if (words[1] != SOL_SOCKET)
		return -EOPNOTSUPP;
	const uint32_t known[][2] = {
		{ SO_TYPE, socket->is_datagram ? SOCK_DGRAM : SOCK_STREAM },
		{ SO_ERROR, words[2] == SO_ERROR ? -socket_take_error(socket) : 0 },
		{ SO_SNDBUF, STREAM_PAGES * PAGE_SIZE },
		{ SO_RCVBUF, STREAM_PAGES * PAGE_SIZE },
		{ SO_PROTOCOL, 0 },
		{ SO_PASSCRED, socket->passes_credentials },
		{ SO_ACCEPTCONN, socket->backlog > 0 },
		{ SO_DOMAIN, AF_UNIX },
	};
	int32_t user = socket->is_connected ? 0 : -1;
	int32_t peer[3] = { socket->peer_pid, user, user };

	if (words[2] == SO_PEERCRED) /* process, user, group */
		return give_option(words, peer, sizeof(peer));
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (words[2] == known[i][0])
			return give_option(words, &known[i][1], sizeof(uint32_t));
	return -ENOPROTOOPT;
}

/* The others can be set, and change nothing here. */
static int set_socket_option(struct socket *socket, const uint32_t *words)
{
	bool is_known = words[2] == SO_SNDBUF || words[2] == SO_RCVBUF ||
			words[2] == SO_REUSEADDR || words[2] == SO_PASSCRED;
	int32_t value;

	if (words[1] != SOL_SOCKET)
		return -EOPNOTSUPP;
	if ((int32_t)words[4] < (int32_t)sizeof(value))
		return -EINVAL;
	if (copy_from_user(&value, words[3], sizeof(value)) != 0)
		return -EFAULT;
	if (words[2] == SO_PASSCRED)
		socket->passes_credentials = value != 0;
	return is_known ? 0 : -ENOPROTOOPT;
}

/* ---- new sockets ---- */

/* SOCK_NONBLOCK and SOCK_CLOEXEC are open's flags. */
static int check_type(const uint32_t *words)
{
	uint32_t type = words[1] & SOCK_TYPES;

	if (words[1] & ~(SOCK_TYPES | O_NONBLOCK | O_CLOEXEC))
		return -EINVAL;
	if (words[0] != AF_UNIX)
		return -EAFNOSUPPORT;
	if (type > SOCK_LAST)
		return -EINVAL;
	if (words[2] > AF_UNIX)
		return -EPROTONOSUPPORT;
	return type >= SOCK_STREAM && type <= SOCK_RAW ? 0 : -ESOCKTNOSUPPORT;
}

/* A new socket's file, and its descriptor, which is returned. */
static int create_socket(const uint32_t *words, struct file **file)
{
	*file = socket_file((words[1] & SOCK_TYPES) != SOCK_STREAM, words[1] & O_NONBLOCK);
	return *file ? descriptor_add(*file, words[1] & O_CLOEXEC) : -ENFILE;
}

/* Either the program has both descriptors, or nothing stays open. Nothing sleeps until the two are
 * joined: another task of the program may close them from then on. */
static int create_pair(const uint32_t *words)
{
	struct file *files[2] = { NULL, NULL };
	int32_t numbers[2] = { -1, -1 };
	int error = 0;

	for (unsigned i = 0; i < 2 && !error; i++) {
		numbers[i] = create_socket(words, &files[i]);
		error = numbers[i] < 0 ? numbers[i] : 0;
	}
	if (!error)
		socket_join(files[0]->private, files[1]->private);
	if (!error)
		error = give(words[3], numbers, sizeof(numbers));
	for (unsigned i = 0; error && i < 2; i++)
		files_close(current->process->files, numbers[i]); /* refuses what is not a number */
	return error;
}

/* socket(2) and socketpair(2). */
static int new_socket(bool is_pair, const uint32_t *words)
{
	struct file *file;
	int error = check_type(words);

	if (error)
		return error;
	return is_pair ? create_pair(words) : create_socket(words, &file);
}

/* ---- system calls ---- */

/* socketcall's numbers (linux/net.h). */
enum {
	SOCKET = 1,
	BIND,
	CONNECT,
	LISTEN,
	ACCEPT,
	OWN_NAME,
	PEER_NAME,
	PAIR,
	SEND,
	RECEIVE,
	SEND_TO,
	RECEIVE_FROM,
	SHUT_DOWN,
	SET_OPTION,
	GET_OPTION,
	SEND_MESSAGE,
	RECEIVE_MESSAGE,
	ACCEPT4,
	SENDMMSG = 20 /* the last one of Linux */
};

/* How many arguments there are; the function gets zeros for others that it knows. */
static const struct {
	uint8_t words;
	socket_call *call;
} socket_calls[] = {
	[SOCKET] = { 3, NULL },
	[BIND] = { 3, socket_bind },
	[CONNECT] = { 3, socket_connect },
	[LISTEN] = { 2, socket_listen },
	[ACCEPT] = { 3, socket_accept },
	[OWN_NAME] = { 3, give_own_name },
	[PEER_NAME] = { 3, give_peer_name },
	[PAIR] = { 4, NULL },
	[SEND] = { 4, send_to },
	[RECEIVE] = { 4, receive_from },
	[SEND_TO] = { 6, send_to },
	[RECEIVE_FROM] = { 6, receive_from },
	[SHUT_DOWN] = { 2, socket_shut },
	[SET_OPTION] = { 5, set_socket_option },
	[GET_OPTION] = { 5, get_socket_option },
	[SEND_MESSAGE] = { 3, send_message_call },
	[RECEIVE_MESSAGE] = { 3, receive_message_call },
	[ACCEPT4] = { 4, socket_accept },
};

/* The file is the open one of words[0], held; or NULL. */
static int call_socket(struct file *file, unsigned number, const uint32_t *words)
{
	if (!file || file->ops != &socket_ops)
		return file ? -ENOTSOCK : -EBADF;
	return socket_calls[number].call(file->private, words);
}

/* The older way: EBX is the number, ECX the address of the words. */
SYSCALL_DEFINE(102, sys_socketcall, "dp")
{
	uint32_t words[6] = { 0 }, number = frame->ebx;

	if (number == 0 || number > SENDMMSG)
		return -EINVAL;
	if (number >= sizeof(socket_calls) / sizeof(socket_calls[0]))
		return -ENOSYS;
	if (copy_from_user(words, frame->ecx, socket_calls[number].words * sizeof(words[0])) != 0)
		return -EFAULT;
	if (number == SOCKET || number == PAIR)
		return new_socket(number == PAIR, words);
	struct file *file = file_hold(words[0]);
	int result = call_socket(file_opened(file), number, words);

	file_drop(file);
	return result;
}

/* A call with arguments in registers, in the order of struct trap_frame's callers. */
#define SOCKET_WORDS                                                                               \
	((const uint32_t[]){ frame->ebx, frame->ecx, frame->edx, frame->esi, frame->edi,           \
			     frame->ebp })

#define SYSCALL_SOCKET(number, function, arguments, which)                                         \
	SYSCALL_FILE(number, function, arguments,                                                  \
		     call_socket(file_opened(file), which, SOCKET_WORDS))

SYSCALL(359, sys_socket, "ddd", new_socket(false, SOCKET_WORDS))
SYSCALL(360, sys_socketpair, "dddp", new_socket(true, SOCKET_WORDS))
SYSCALL_SOCKET(361, sys_bind, "fpd", BIND)
SYSCALL_SOCKET(362, sys_connect, "fpd", CONNECT)
SYSCALL_SOCKET(363, sys_listen, "fd", LISTEN)
SYSCALL_SOCKET(364, sys_accept4, "fppx", ACCEPT4)
SYSCALL_SOCKET(365, sys_getsockopt, "fddpp", GET_OPTION)
SYSCALL_SOCKET(366, sys_setsockopt, "fddpd", SET_OPTION)
SYSCALL_SOCKET(367, sys_getsockname, "fpp", OWN_NAME)
SYSCALL_SOCKET(368, sys_getpeername, "fpp", PEER_NAME)
SYSCALL_SOCKET(369, sys_sendto, "fpdxpd", SEND_TO)
SYSCALL_SOCKET(370, sys_sendmsg, "fpx", SEND_MESSAGE)
SYSCALL_SOCKET(371, sys_recvfrom, "fpdxpp", RECEIVE_FROM)
SYSCALL_SOCKET(372, sys_recvmsg, "fpx", RECEIVE_MESSAGE)
SYSCALL_SOCKET(373, sys_shutdown, "fd", SHUT_DOWN)
