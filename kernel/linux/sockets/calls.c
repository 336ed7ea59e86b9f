/*
 * System calls of sockets. i386 has two ways to each: since Linux 4.3 a call of its own, and before
 * that socketcall(2), one call with a number and the address of the arguments: here it makes the
 * call that the number means. A call is a function of the socket and the registers.
 *
 * All that send end in socket_send, and all that receive in socket_receive: they differ in where a
 * transfer's memory, name and control data are. send(2), recv(2), getsockopt(2), unix(7).
 */

#include "kernel/linux/files/calls.h"
#include "kernel/linux/sockets/sockets.h"
#include "kernel/process/descriptor_calls.h"

/* Numbers that Linux has; the last two, which move several messages, are missing here. */
#define SOCKETCALLS 20u

/* ---- sending and receiving ---- */

/* The end of every send, as write's. A send to a broken stream raises SIGPIPE, unless with
 * MSG_NOSIGNAL; a datagram never does. */
static int end_send(const struct socket *socket, int result, uint32_t flags)
{
	return flags & MSG_NOSIGNAL || socket->is_datagram ? result : end_write(result);
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

/* Receives, and gives the program the sender's name, as give_sized does: of length 0 if the sender
 * has none. Nothing of that at address 0. */
static int receive_transfer(struct socket *socket, struct transfer *transfer, uint32_t address,
			    uint32_t length)
{
	struct socket_name from;

	from.length = 0;
	transfer->name = address ? &from : NULL;
	int result = socket_receive(socket, transfer);

	if (result < 0 || !address)
		return result;
	return give_sized(address, length, &from.text, from.length, false) ?: result;
}

/* sendto(2) and recvfrom(2): a transfer of one piece of the program's memory. send(2) and recv(2)
 * are the same without a name. */
static int move_one_piece(struct socket *socket, const struct trap_frame *frame, bool sends)
{
	struct buffer memory;

	if (!buffer_from_call(&memory, frame->ecx, frame->edx))
		return -EFAULT;
	struct transfer transfer = { .memory = memory, .left = memory.length, .flags = frame->esi };

	return sends ? send_transfer(socket, &transfer, frame->edi, frame->ebp)
		     : receive_transfer(socket, &transfer, frame->edi, frame->ebp);
}

/* recvmsg(2), of a transfer whose control data is this message. The program's structure, at an
 * address, gets the lengths of what has come, and flags: MSG_TRUNC for a datagram that was longer,
 * MSG_CTRUNC for control data without room. */
static int receive_message(struct socket *socket, struct transfer *transfer, uint32_t address)
{
	struct linux_message *message = transfer->control;
	uint32_t control = message->control;

	message->flags = 0;
	int result = receive_transfer(socket, transfer, message->name,
				      address + offsetof(struct linux_message, name_length));

	if (result < 0)
		return result;
	message->control_length = message->control - control;
	return give(address + offsetof(struct linux_message, control_length),
		    &message->control_length, sizeof(uint32_t[2])) /* and the flags */
		   ?: result;
}

/* sendmsg(2) and recvmsg(2): a transfer of the memory that struct msghdr names. */
static int move_message(struct socket *socket, const struct trap_frame *frame, bool sends)
{
	struct linux_message message;
	struct vectors vectors CLEANUP(vectors_release) = { .list = NULL };

	if (copy_from_user(&message, frame->ecx, sizeof(message)) != 0)
		return -EFAULT;
	if (message.count > VECTORS_MAX)
		return -EMSGSIZE;
	int error = vectors_from_user(&vectors, message.vectors, message.count);

	if (error)
		return error;
	struct transfer transfer = { .more = vectors.list,
				     .left = vectors.total,
				     .flags = frame->edx,
				     .control = &message };

	return sends ? send_transfer(socket, &transfer, message.name, message.name_length)
		     : receive_message(socket, &transfer, frame->ecx);
}

/* ---- options ---- */

/* Options of a socket that have an answer (socket(7)): the others are refused. A buffer is as large
 * as a stream's queue, in bytes, and stays so. SO_ERROR tells an error once; SO_PEERCRED is user -1
 * as long as there is no peer. */
static int get_socket_option(struct socket *socket, const struct trap_frame *frame)
{
	if (frame->ecx != SOL_SOCKET)
		return -EOPNOTSUPP;
	const uint32_t known[][2] = {
		{ SO_TYPE, socket->is_datagram ? SOCK_DGRAM : SOCK_STREAM },
		{ SO_ERROR, frame->edx == SO_ERROR ? -socket_take_error(socket) : 0 },
		{ SO_SNDBUF, STREAM_PAGES * PAGE_SIZE },
		{ SO_RCVBUF, STREAM_PAGES * PAGE_SIZE },
		{ SO_PROTOCOL, 0 },
		{ SO_PASSCRED, socket->passes_credentials },
		{ SO_ACCEPTCONN, socket->backlog > 0 },
		{ SO_DOMAIN, AF_UNIX },
	};
	int32_t user = socket->is_connected ? 0 : -1;
	int32_t peer[3] = { socket->peer_pid, user, user };

	if (frame->edx == SO_PEERCRED) /* process, user, group */
		return give_sized(frame->esi, frame->edi, peer, sizeof(peer), true);
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (frame->edx == known[i][0])
			return give_sized(frame->esi, frame->edi, &known[i][1], sizeof(uint32_t),
					  true);
	return -ENOPROTOOPT;
}

/* Options that programs set (socket(7)). Only SO_PASSCRED has an effect: buffers stay as large as
 * they are, and SO_REUSEADDR means nothing to AF_UNIX. */
static int set_socket_option(struct socket *socket, const struct trap_frame *frame)
{
	bool is_known = frame->edx == SO_SNDBUF || frame->edx == SO_RCVBUF ||
			frame->edx == SO_REUSEADDR || frame->edx == SO_PASSCRED;
	int32_t value;

	if (frame->ecx != SOL_SOCKET)
		return -EOPNOTSUPP;
	if ((int32_t)frame->edi < (int32_t)sizeof(value))
		return -EINVAL;
	if (copy_from_user(&value, frame->esi, sizeof(value)) != 0)
		return -EFAULT;
	if (frame->edx == SO_PASSCRED)
		socket->passes_credentials = value != 0;
	return is_known ? 0 : -ENOPROTOOPT;
}

/* ---- new sockets ---- */

/* SOCK_NONBLOCK and SOCK_CLOEXEC are open's flags. SOCK_RAW is a datagram's other name here. The
 * order of the errors is Linux's (net/socket.c, and unix_create in net/unix/af_unix.c); protocol 1
 * is AF_UNIX itself. */
static int check_type(const struct trap_frame *frame)
{
	uint32_t type = frame->ecx & SOCK_TYPES;

	if (frame->ecx & ~(SOCK_TYPES | O_NONBLOCK | O_CLOEXEC))
		return -EINVAL;
	if (frame->ebx != AF_UNIX)
		return -EAFNOSUPPORT;
	if (type > SOCK_LAST)
		return -EINVAL;
	if (frame->edx > AF_UNIX)
		return -EPROTONOSUPPORT;
	return type >= SOCK_STREAM && type <= SOCK_RAW ? 0 : -ESOCKTNOSUPPORT;
}

/* A new socket's file of the type that is asked for, or an error of that. */
static int make_socket(const struct trap_frame *frame, struct file **file)
{
	int error = check_type(frame);

	if (error)
		return error;
	*file = socket_file((frame->ecx & SOCK_TYPES) != SOCK_STREAM, frame->ecx & O_NONBLOCK);
	return *file ? 0 : -ENFILE;
}

/* socket(2). */
static int create_socket(const struct trap_frame *frame)
{
	struct file *file;

	return make_socket(frame, &file) ?: descriptor_add(file, frame->ecx);
}

/* socketpair(2). The two are joined before the program can close one of them. */
static int create_pair(const struct trap_frame *frame)
{
	struct file *first = NULL, *second;
	int error = make_socket(frame, &first) ?: make_socket(frame, &second);

	if (error) {
		file_drop(first);
		return error;
	}
	socket_join(first->private, second->private);
	return descriptors_give_two(frame->esi, first, second, frame->ecx);
}

/* ---- system calls ---- */

/* -EBADF and -ENOTSOCK come before all that a call says of its other arguments. */
static int call_socket(struct file *file, const struct trap_frame *frame, socket_call *call)
{
	if (!file || file->ops != &socket_ops)
		return file ? -ENOTSOCK : -EBADF;
	return call(file->private, frame);
}

/* A call of the open socket of argument 0: a function of `socket` and the frame's registers. */
#define SYSCALL_SOCKET(number, function, arguments, result)                                        \
	static int function##_of(struct socket *socket, const struct trap_frame *frame)            \
	{                                                                                          \
		return result;                                                                     \
	}                                                                                          \
	SYSCALL_FILE(number, function, arguments,                                                  \
		     call_socket(file_opened(file), frame, function##_of))

SYSCALL(359, sys_socket, "ddd", create_socket(frame))
SYSCALL(360, sys_socketpair, "dddp", create_pair(frame))
SYSCALL_SOCKET(361, sys_bind, "fpd", socket_bind(socket, frame))
SYSCALL_SOCKET(362, sys_connect, "fpd", socket_connect(socket, frame))
SYSCALL_SOCKET(363, sys_listen, "fd", socket_listen(socket, frame))
SYSCALL_SOCKET(364, sys_accept4, "fppx", socket_accept(socket, frame))
SYSCALL_SOCKET(365, sys_getsockopt, "fddpp", get_socket_option(socket, frame))
SYSCALL_SOCKET(366, sys_setsockopt, "fddpd", set_socket_option(socket, frame))
SYSCALL_SOCKET(367, sys_getsockname, "fpp", socket_give_name(&socket->name, frame->ecx, frame->edx))
SYSCALL_SOCKET(368, sys_getpeername, "fpp",
	       socket->is_connected ? socket_give_name(&socket->peer_name, frame->ecx, frame->edx)
				    : -ENOTCONN)
SYSCALL_SOCKET(369, sys_sendto, "fpdxpd", move_one_piece(socket, frame, true))
SYSCALL_SOCKET(370, sys_sendmsg, "fpx", move_message(socket, frame, true))
SYSCALL_SOCKET(371, sys_recvfrom, "fpdxpp", move_one_piece(socket, frame, false))
SYSCALL_SOCKET(372, sys_recvmsg, "fpx", move_message(socket, frame, false))
SYSCALL_SOCKET(373, sys_shutdown, "fd", socket_shut(socket, frame))

/* What socketcall's numbers from 1 on mean (linux/net.h), and how many arguments they have: send is
 * sendto without a name, accept is accept4 without flags. */
static const struct {
	uint8_t words;
	int (*call)(struct trap_frame *frame);
} by_number[] = {
	{ 3, sys_socket },   { 3, sys_bind },	     { 3, sys_connect },     { 2, sys_listen },
	{ 3, sys_accept4 },  { 3, sys_getsockname }, { 3, sys_getpeername }, { 4, sys_socketpair },
	{ 4, sys_sendto },   { 4, sys_recvfrom },    { 6, sys_sendto },	     { 6, sys_recvfrom },
	{ 2, sys_shutdown }, { 5, sys_setsockopt },  { 5, sys_getsockopt },  { 3, sys_sendmsg },
	{ 3, sys_recvmsg },  { 4, sys_accept4 },
};

/* The older way: EBX is the number, ECX the address of the arguments, which a frame of their own
 * has in the registers; those that are missing are 0. */
SYSCALL_DEFINE(102, sys_socketcall, "dp")
{
	uint32_t words[6] = { 0 }, number = frame->ebx - 1;

	if (number >= SOCKETCALLS)
		return -EINVAL;
	if (number >= sizeof(by_number) / sizeof(by_number[0]))
		return -ENOSYS;
	if (copy_from_user(words, frame->ecx, by_number[number].words * sizeof(words[0])) != 0)
		return -EFAULT;
	struct trap_frame call = { .ebx = words[0],
				   .ecx = words[1],
				   .edx = words[2],
				   .esi = words[3],
				   .edi = words[4],
				   .ebp = words[5] };

	return by_number[number].call(&call);
}
