/* System calls of sockets; words are the arguments, the descriptor first. */
#include "kernel/linux/sockets/sockets.h"

#include <stddef.h>

#include "fs/files.h"
#include "kernel/abi/file.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/files/calls.h"
#include "kernel/process/process.h"
#include "kernel/syscall/syscall.h"

#define MSG_KNOWN                                                                                  \
	(MSG_PEEK | MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_CMSG_CLOEXEC | MSG_WAITALL |      \
	 MSG_TRUNC)

static int transfer(struct file *file, uint32_t address, uint32_t length, uint32_t flags,
		    bool sends)
{
	uint32_t how = file->flags | (flags & MSG_DONTWAIT ? O_NONBLOCK : 0), done = 0;
	bool peeks = !sends && (flags & MSG_PEEK);
	bool waits_for_all = !sends && !peeks && (flags & MSG_WAITALL);
	struct buffer buffer;
	int result;

	if (flags & ~MSG_KNOWN)
		return -EOPNOTSUPP;
	do {
		if (!buffer_from_call(&buffer, address + done, length - done))
			return -EFAULT;
		result = peeks ? end_peek(end_of(file), &buffer, how)
			       : end_move(end_of(file), &buffer, sends, how);
		done += result > 0 ? result : 0;
	} while (waits_for_all && result > 0 && done < length && !end_has_files(end_of(file)));
	return done ? (int)done : result;
}

static int sent(int result, uint32_t flags)
{
	return flags & MSG_NOSIGNAL ? result : end_write(result);
}

/* Everything goes to the other end: no address can be given. */
static int end_send(struct file *file, const uint32_t *words)
{
	if (words[4] && words[5])
		return -EISCONN;
	return sent(transfer(file, words[1], words[2], words[3], true), words[3]);
}

static int end_receive(struct file *file, const uint32_t *words)
{
	int result = transfer(file, words[1], words[2], words[3], false);

	if (result > 0)
		end_receive_files(end_of(file), NULL, 0);
	return result;
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

/* Vectors after the first do not wait, and do not go on where other files come. */
static int move_vectors(struct file *file, const struct linux_message *message, uint32_t flags,
			bool sends)
{
	uint32_t vector[2], moved = 0; /* address, length */

	for (uint32_t i = 0; i < message->count; i++) {
		if (moved && !sends && end_has_files(end_of(file)))
			break;
		if (copy_from_user(vector, message->vectors + i * sizeof(vector), sizeof(vector)))
			return moved ? (int)moved : -EFAULT;
		bool is_later = moved && !sends && !(flags & MSG_WAITALL);
		int result = transfer(file, vector[0], vector[1],
				      flags | (is_later ? MSG_DONTWAIT : 0), sends);

		if (result < 0)
			return moved ? (int)moved : result;
		moved += result;
		if ((uint32_t)result < vector[1] || (flags & MSG_PEEK))
			break;
	}
	return moved;
}

static int end_send_message(struct file *file, const uint32_t *words)
{
	struct linux_message message;
	uint32_t at;

	if (copy_from_user(&message, words[1], sizeof(message)) != 0)
		return -EFAULT;
	if (message.name && message.name_length)
		return -EISCONN;
	int error =
	    message.count > VECTORS_MAX ? -EMSGSIZE : end_send_files(end_of(file), &message, &at);

	if (error)
		return error;
	int result = move_vectors(file, &message, words[2], true);

	if (result <= 0)
		end_unsend_files(end_of(file), at);
	return sent(result, words[2]);
}

static int end_receive_message(struct file *file, const uint32_t *words)
{
	struct linux_message message;

	if (copy_from_user(&message, words[1], sizeof(message)) != 0)
		return -EFAULT;
	if (message.count > VECTORS_MAX)
		return -EMSGSIZE;
	int result = move_vectors(file, &message, words[2], false);

	if (result < 0)
		return result;
	const struct end *from = end_other(end_of(file));
	uint32_t control = message.control, given;

	message.flags = 0;
	given = credentials_give(file->private, from->last_pid, &message);
	end_receive_files(end_of(file), &message, words[2]);
	message.control = control;
	message.control_length += given;
	message.name_length = 0;
	return give(words[1], &message, sizeof(message)) != 0 ? -EFAULT : result;
}

static int shut_down(struct file *file, const uint32_t *words)
{
	bool receives = words[1] == SHUT_WR, sends = words[1] == SHUT_RD;
	struct socket *socket = file->private;

	if (words[1] > SHUT_RDWR)
		return -EINVAL;
	if (socket->is_datagram)
		datagram_shut(socket, receives, sends);
	else if (socket->end)
		end_shut(socket->end, receives, sends);
	else
		return -ENOTCONN;
	return 0;
}

/* Of a socket that was accepted it is the listener's, of the other end there is none. */
static int give_name(const struct file *file, bool is_peer, const uint32_t *words)
{
	const struct socket *socket = file->private;
	const struct pair *pair = socket->end ? socket->end->pair : NULL;
	bool is_second = pair && socket->end == &pair->ends[1];
	struct socket_name name = { { .family = AF_UNIX }, sizeof(uint16_t) };

	if (pair && pair->name.length && is_second != is_peer)
		name = pair->name;
	else if (!is_peer && socket->name.length)
		name = socket->name;
	return socket_give_name(&name, words[1], words[2]);
}

static int socket_name(struct file *file, const uint32_t *words)
{
	return give_name(file, false, words);
}

static int end_peer_name(struct file *file, const uint32_t *words)
{
	return give_name(file, true, words);
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
static int socket_option(struct file *file, const uint32_t *words)
{
	const struct socket *socket = file->private;
	struct end *end = socket->end;

	if (words[1] != SOL_SOCKET)
		return -EOPNOTSUPP;
	const uint32_t known[][2] = {
		{ SO_TYPE, socket->is_datagram ? SOCK_DGRAM : SOCK_STREAM },
		{ SO_ERROR, end && words[2] == SO_ERROR ? -end_take_error(end) : 0 },
		{ SO_SNDBUF, PIPE_CAPACITY },
		{ SO_RCVBUF, PIPE_CAPACITY },
		{ SO_PROTOCOL, 0 },
		{ SO_PASSCRED, socket->passes_credentials },
		{ SO_ACCEPTCONN, socket->backlog > 0 },
		{ SO_DOMAIN, AF_UNIX },
	};
	int32_t user = end ? 0 : -1;
	int32_t peer[3] = { end ? end_other(end)->pid : 0, user, user };

	if (words[2] == SO_PEERCRED) /* process, user, group */
		return give_option(words, peer, sizeof(peer));
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (words[2] == known[i][0])
			return give_option(words, &known[i][1], sizeof(uint32_t));
	return -ENOPROTOOPT;
}

/* The others can be set, and change nothing here. */
static int socket_set_option(struct file *file, const uint32_t *words)
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
		((struct socket *)file->private)->passes_credentials = value != 0;
	return is_known ? 0 : -ENOPROTOOPT;
}

/* accept, without flags. */
static int socket_accept_plain(struct file *file, const uint32_t *words)
{
	const uint32_t four[] = { words[0], words[1], words[2], 0 };

	return socket_accept(file, four);
}

/* ---- calls that make sockets ---- */

/* SOCK_NONBLOCK and SOCK_CLOEXEC are open's flags. */
static int check_type(const uint32_t *words, const struct file_ops **ops)
{
	uint32_t type = words[1] & SOCK_TYPES;

	*ops = type == SOCK_STREAM ? &socket_ops : &datagram_ops;
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

static int socket_create(const uint32_t *words)
{
	uint32_t flags = words[1] & (O_NONBLOCK | O_CLOEXEC);
	const struct file_ops *ops;
	int error = check_type(words, &ops);

	if (error)
		return error;
	struct file *file = socket_file(ops, flags & O_NONBLOCK);

	return file ? descriptor_add(file, flags) : -ENFILE;
}

/* Two files for the ends of a pair, or two that send datagrams to each other. */
static int create_pair(struct file *files[2], uint32_t flags, const struct file_ops *ops)
{
	bool is_datagram = ops == &datagram_ops;
	struct pair *pair = is_datagram ? NULL : pair_create();

	if (!pair && !is_datagram)
		return -ENFILE;
	for (unsigned i = 0; i < 2; i++) {
		files[i] = socket_file(ops, flags & O_NONBLOCK);
		if (files[i] && pair)
			((struct socket *)files[i]->private)->end = &pair->ends[i];
		else if (pair)
			end_close(&pair->ends[i]);
	}
	if (files[0] && files[1] && is_datagram)
		datagram_pair(files[0], files[1]);
	return 0;
}

/* Either the program has both descriptors, or nothing stays open. */
static int socket_pair(const uint32_t *words)
{
	uint32_t flags = words[1] & (O_NONBLOCK | O_CLOEXEC);
	struct file *files[2];
	const struct file_ops *ops;
	int32_t numbers[2];
	int error = check_type(words, &ops);

	if (!error)
		error = create_pair(files, flags, ops);
	if (error)
		return error;
	for (unsigned i = 0; i < 2; i++) {
		numbers[i] = files[i] ? descriptor_add(files[i], flags) : -ENFILE;
		error = numbers[i] < 0 ? numbers[i] : error;
	}
	if (!error)
		error = give(words[3], numbers, sizeof(numbers));
	for (unsigned i = 0; error && i < 2; i++)
		files_close(current->process->files, numbers[i]); /* refuses what is not a number */
	return error;
}

/* ---- system calls ---- */

#define SOCKET	   1u
#define SOCKETPAIR 8u
#define SENDMMSG   20u /* the last one of Linux */
#define DIRECT	   359u

static int refuse(struct file *file, const uint32_t *words)
{
	return -EOPNOTSUPP;
}

/* By the older way's numbers. */
static const struct {
	socket_call *call;
	uint8_t words;
	bool needs_end;
	socket_call *of_datagrams; /* NULL: the same */
} socket_calls[] = {
	[1] = { NULL, 3 },
	[2] = { socket_bind, 3 },
	[3] = { socket_connect, 3, false, datagram_connect },
	[4] = { socket_listen, 2, false, refuse },
	[5] = { socket_accept_plain, 3, false, refuse },
	[6] = { socket_name, 3 },
	[7] = { end_peer_name, 3, true, datagram_peer_name },
	[8] = { NULL, 4 },
	[9] = { end_send, 4, true, datagram_send_to },
	[10] = { end_receive, 4, true, datagram_receive_from },
	[11] = { end_send, 6, true, datagram_send_to },
	[12] = { end_receive_from, 6, true, datagram_receive_from },
	[13] = { shut_down, 2 },
	[14] = { socket_set_option, 5 },
	[15] = { socket_option, 5 },
	[16] = { end_send_message, 3, true, datagram_send_message },
	[17] = { end_receive_message, 3, true, datagram_receive_message },
	[18] = { socket_accept, 4, false, refuse },
};

static int new_socket(unsigned number, const uint32_t *words)
{
	return number == SOCKET ? socket_create(words) : socket_pair(words);
}

static int call_socket(struct file *file, unsigned number, const uint32_t *words)
{
	bool is_datagram = file && file->ops == &datagram_ops;
	socket_call *call = socket_calls[number].call, *other = socket_calls[number].of_datagrams;

	if (!file || (file->ops != &socket_ops && !is_datagram))
		return file ? -ENOTSOCK : -EBADF;
	if (socket_calls[number].needs_end && !is_datagram && !end_of(file))
		return -ENOTCONN;
	return is_datagram && other ? other(file, words) : call(file, words);
}

/* The older way: one call for all of sockets, with its arguments in memory. */
static int sys_socketcall(struct trap_frame *frame)
{
	uint32_t words[6] = { 0 }, number = frame->ebx;

	if (number == 0 || number > SENDMMSG)
		return -EINVAL;
	if (number >= sizeof(socket_calls) / sizeof(socket_calls[0]))
		return -ENOSYS;
	if (copy_from_user(words, frame->ecx, socket_calls[number].words * sizeof(words[0])) != 0)
		return -EFAULT;
	if (number == SOCKET || number == SOCKETPAIR)
		return new_socket(number, words);
	struct file *file = file_hold(words[0]);
	int result = call_socket(file_opened(file), number, words);

	file_drop(file);
	return result;
}

/* One call each, from 359 on. */
static int call_direct(struct file *file, const struct trap_frame *frame)
{
	static const uint8_t older[] = { SOCKET, SOCKETPAIR, 2,	 3,  4,	 18, 15, 14,
					 6,	 7,	     11, 16, 12, 17, 13 };
	const uint32_t words[] = { frame->ebx, frame->ecx, frame->edx,
				   frame->esi, frame->edi, frame->ebp };

	return call_socket(file, older[frame->eax - DIRECT], words);
}

static int sys_socket_new(struct trap_frame *frame)
{
	const uint32_t words[] = { frame->ebx, frame->ecx, frame->edx, frame->esi };

	return new_socket(frame->eax == DIRECT ? SOCKET : SOCKETPAIR, words);
}

FILE_CALL(sys_socket_direct, call_direct(file_opened(file), frame))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 102, "socketcall", "dp", sys_socketcall },
	{ 359, "socket", "ddd", sys_socket_new },
	{ 360, "socketpair", "dddp", sys_socket_new },
	{ 361, "bind", "fpd", sys_socket_direct },
	{ 362, "connect", "fpd", sys_socket_direct },
	{ 363, "listen", "fd", sys_socket_direct },
	{ 364, "accept4", "fppx", sys_socket_direct },
	{ 365, "getsockopt", "fddpp", sys_socket_direct },
	{ 366, "setsockopt", "fddpd", sys_socket_direct },
	{ 367, "getsockname", "fpp", sys_socket_direct },
	{ 368, "getpeername", "fpp", sys_socket_direct },
	{ 369, "sendto", "fpdxpd", sys_socket_direct },
	{ 370, "sendmsg", "fpx", sys_socket_direct },
	{ 371, "recvfrom", "fpdxpp", sys_socket_direct },
	{ 372, "recvmsg", "fpx", sys_socket_direct },
	{ 373, "shutdown", "fd", sys_socket_direct },
};
