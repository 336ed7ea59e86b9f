/*
 * Sockets of this machine (AF_UNIX, unix(7)): streams (SOCK_STREAM) and datagrams (SOCK_DGRAM).
 *
 * Whatever is sent is a message in the queue of the socket that will receive it:
 *
 *	datagram	message --- message		each arrives whole, or not at all
 *	stream		message --- message		the receiver sees one sequence of bytes
 *	listener	message --- message		each has one file: a connection's other end
 *
 * A message may have files (SCM_RIGHTS); a connection that waits for accept(2) is such a file, too.
 * All functions are called by system calls, which are not pre-empted: what does not sleep is one
 * step for other tasks. Copies to and from programs sleep, and so does the release of a file.
 */
#pragma once

#include "fs/file.h"
#include "fs/linux/poll.h"
#include "kernel/abi/file.h"
#include "kernel/abi/socket.h"
#include "kernel/linux/list_each.h"

struct trap_frame;

/* As programs give it and get it; a path has its NUL. */
struct socket_name {
	struct linux_socket_name text;
	uint32_t length; /* 0: none */
};

/* In one queue, or in the hands of one call. It is at the beginning of its own pages. */
struct message {
	struct list link;	   /* of the queue */
	int32_t pid;		   /* of the sender's program */
	unsigned order;		   /* of the pages, as a power of two */
	uint32_t length, received; /* bytes; how many of them a stream's reader has had */
	uint32_t file_count;	   /* references, until somebody receives them */
	bool is_spent;		   /* a stream's last one, all of which was received */
	char *bytes;		   /* after the files */
	struct socket_name from;   /* the sender's; of a stream it is the peer's */
	struct file *files[];
};

/* The private data of an open socket. The file is the only one that has it. */
struct socket {
	struct file *file;
	bool is_datagram;
	bool is_bound;		 /* `name` finds it: that of an accepted one is its listener's */
	bool is_connected;	 /* a stream stays so when its peer is closed */
	bool is_embryo;		 /* nobody has accepted it yet */
	bool passes_credentials; /* what is received says who has sent it (SO_PASSCRED) */
	bool is_shut[2];	 /* no more comes (SHUT_RD), nothing can be sent (SHUT_WR) */
	int error;		 /* told once: the peer has lost bytes; or 0 */
	struct socket_name name, peer_name;
	struct inode *inode;	   /* of a name that is a path, a reference; or NULL */
	struct socket *peer;	   /* gets what is sent without a name; NULL when it is closed */
	int32_t pid, peer_pid;	   /* of the programs that connected the two, or listen */
	uint32_t backlog;	   /* connections in the queue, at most; 0: it does not listen */
	struct list messages;	   /* the queue */
	uint32_t used;		   /* of socket_capacity */
	struct claim receiving;	   /* by the task that copies out of the queue */
	struct claim sending;	   /* by the one that puts bytes at a stream's end */
	struct wait_queue changed; /* the queue, the peer's queue, or the connection */

	/* See socket_collect. */
	uint32_t in_flight; /* of the file's references, those that messages have */
	bool is_reached;    /* by a program, perhaps through others */
	struct list link;   /* of open_sockets */
};

/* A call of a socket; the frame's registers have the arguments, EBX the descriptor. */
typedef int socket_call(struct socket *socket, const struct trap_frame *frame);

/* ---- names.c: open sockets and their names ---- */

extern struct list open_sockets; /* all of them */
socket_call socket_bind;

/* Reads a name from a program: 0, -EINVAL, -EFAULT. A path gets a NUL, an empty name stays so. */
int socket_name_from_user(uint32_t address, uint32_t length, struct socket_name *name);

/* Finds the socket that has the name: NULL if no open one has it. Returns 0, or an error of the
 * path. May sleep; *found is there until the caller sleeps again. */
int socket_find(const struct socket_name *name, struct socket **found);

/* Gives a name to the program, as getsockname does; of length 0: that there is none. */
int socket_give_name(const struct socket_name *name, uint32_t address, uint32_t length);

/* Gives a value, cut to the room that the word at `length` says; the word then is the whole value's
 * size, or (tells_cut) that of what was given. */
int give_sized(uint32_t address, uint32_t length, const void *value, uint32_t size, bool tells_cut);

/* ---- message.c: what is sent and received ---- */

#define STREAM_PAGES 16u /* of a stream's queue */

/* What a call moves, as Linux's struct msghdr says it. */
struct transfer {
	struct buffer memory;		 /* the piece that is next, or an empty one before it */
	const struct linux_vector *more; /* the pieces after it */
	uint32_t left;			 /* bytes of all pieces */
	uint32_t flags;			 /* MSG_DONTWAIT and its like */
	struct socket_name *name;	 /* of the receiver; or gets the sender's. Or NULL */
	struct linux_message *control;	 /* its control data and flags are used; or NULL */
	int32_t pid;			 /* of the sender of what was received; or 0 */
	bool is_over;			 /* nothing may be received after this */
};

/* Sends everything, or (a stream) as much as there is room for if it must not wait. Returns how
 * many bytes, or a negated errno if none. */
int socket_send(struct socket *socket, struct transfer *transfer);

/* Receives a message, or (a stream) what there is, and who has sent it. Returns how many bytes, of
 * a datagram and with MSG_TRUNC those that it had; 0 at the end; or a negated errno. */
int socket_receive(struct socket *socket, struct transfer *transfer);

/* A message with room for the bytes and the files, in no queue; NULL without memory. */
struct message *message_create(uint32_t length, uint32_t files);

/* Puts a message into the queue of the socket with this name, or (NULL) of the peer, as soon as
 * there is room. *receiver is that socket: until the caller sleeps. */
int socket_deliver(struct socket *socket, const struct socket_name *name, uint32_t flags,
		   struct message *message, struct socket **receiver);

/* Who would get the message now; errors are those of send(2) and connect(2). May sleep. */
int socket_receiver(struct socket *socket, const struct socket_name *name,
		    struct socket **receiver);

/* The message with this link, or NULL for the queue's own: that is after the last one. */
static inline struct message *message_at(const struct socket *socket, const struct list *link)
{
	return link != &socket->messages ? list_entry(link, struct message, link) : NULL;
}

static inline struct message *socket_first(const struct socket *socket)
{
	return message_at(socket, socket->messages.next);
}

/* Is there a message? */
static inline bool socket_has_message(const struct socket *socket)
{
	const struct message *first = socket_first(socket);

	return first && !first->is_spent;
}

/* Waits for a message, unless none will come: then the result is 0, too. -EAGAIN, -ERESTART. */
int socket_wait(struct socket *socket, uint32_t flags);

/* Takes the first message out of the queue. If that was full, senders look again. */
struct message *socket_dequeue(struct socket *socket);

/* Is the queue full for those who send to it? */
bool socket_is_full(const struct socket *socket);

/* Wakes when the queue of any socket is no longer full, or has gone. */
extern struct wait_queue socket_room;
void socket_tell_room(struct socket *socket);

/* ---- socket.c: open sockets and their connections ---- */

socket_call socket_connect, socket_listen, socket_accept, socket_shut;

extern const struct file_ops socket_ops;

/* An open socket that is not connected, with no name. NULL without memory. */
struct file *socket_file(bool is_datagram, uint32_t flags);

/* The socket's error, which is gone then; or 0. */
static inline int socket_take_error(struct socket *socket)
{
	int error = socket->error;

	socket->error = 0;
	return error;
}

/* Makes two sockets each other's peers. */
void socket_join(struct socket *one, struct socket *other);

/* ---- control.c: control data, and files that are sent ---- */

/* How many files can a call's control data name at most? */
uint32_t control_files(const struct linux_message *control);

/* Adds the files that the control data names to a message with room for control_files, and checks
 * the credentials. -EBADF, -EFAULT, -EINVAL, -EPERM. */
int control_send(struct message *message, const struct linux_message *control);

/* Gives the program what comes besides a message's bytes: the sender's name and credentials, if
 * they are the first of this transfer, and the files as descriptors. Moves `control` and its length
 * past that. What there is no room for is dropped, and MSG_CTRUNC set. Sleeps. */
void control_receive(const struct socket *socket, struct message *message,
		     struct transfer *transfer);

/* The message owns this reference from now on; and the caller that of one of the files. */
void message_add_file(struct message *message, struct file *file);
struct file *message_take_file(struct message *message, uint32_t index);

/* Frees a message that is in no queue, and releases its files. Sleeps. */
void message_free(struct message *message);

/* The same for all messages that only sockets in other messages could receive. Sleeps. */
void socket_collect(void);
