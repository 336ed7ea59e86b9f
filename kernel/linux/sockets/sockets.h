/* Sockets of this machine (AF_UNIX). Streams: their two ends, their names, and the files that are
 * sent through them; and datagrams. */
#pragma once

#include "fs/pipe.h"
#include "kernel/abi/socket.h"

struct datagram;
struct pair;
struct sent_file;

/* One end of a connection. */
struct end {
	struct pair *pair;
	struct file *reader, *writer; /* neither of them waits */
	bool receives, sends;	      /* not shut down */
	int error;		      /* is told once: the other end has lost bytes; or 0 */
	struct sent_file *first;      /* files on the way to this end */
	int32_t pid;		      /* of the process that made it */
	int32_t last_pid;	      /* of the one that has sent last */
};

struct socket_name {
	struct linux_socket_name text;
	uint32_t length; /* 0: none */
};

/* A connection. */
struct pair {
	struct end ends[2]; /* the first one called connect, the second one's name is known */
	struct socket_name name;
	unsigned open;	   /* ends */
	struct pair *next; /* in the queue of a socket that listens */
};

static inline struct end *end_other(const struct end *end)
{
	return &end->pair->ends[end == end->pair->ends];
}

/* The private data of an open socket. */
struct socket {
	struct end *end; /* NULL: not connected */
	const struct file *file;
	uint32_t flying; /* of the file's references, those on the way through other sockets */
	bool is_reached; /* by a program, perhaps through others: see socket_collect */
	struct socket_name name;
	struct inode *inode; /* of the name, a reference; NULL: it is abstract, or there is none */
	struct pair *first;  /* who waits to be accepted */
	uint32_t waiting, backlog; /* how many, and at most; 0: it does not listen */
	int32_t pid;		   /* of the process that listens */
	bool passes_credentials;   /* messages say who has sent them (SO_PASSCRED) */
	struct wait_queue arrivals;
	struct socket *next; /* with a name */
	struct socket *next_open;

	/* Of datagrams; `waiting` counts the messages. */
	bool is_datagram, is_shut[2]; /* by SHUT_RD, SHUT_WR */
	struct datagram *messages;
	struct socket *peer; /* or NULL */
	struct socket *next_connected;
};

extern const struct file_ops socket_ops, datagram_ops;

static inline struct end *end_of(const struct file *file)
{
	return ((const struct socket *)file->private)->end;
}

/* A file for a socket that is not connected, with no name. `ops` are its kind's. NULL without
 * memory. */
struct file *socket_file(const struct file_ops *ops, uint32_t flags);

/* Gives back what the file had, when it is released. */
void socket_free(struct socket *socket);

/* Two ends, which no socket has yet; NULL without memory. An end is closed once. */
struct pair *pair_create(void);
void end_close(struct end *end);

/* Ends what it does not do any more: for the other end, too, and for all who wait. */
void end_shut(struct end *end, bool receives, bool sends);

/* Moves bytes; flags are the file's. */
int end_move(struct end *end, struct buffer *buffer, bool sends, uint32_t flags);

/* The end's error, which is gone then; or 0. */
int end_take_error(struct end *end);

/* Copies what the next end_move would receive, and leaves it there. */
int end_peek(struct end *end, struct buffer *to, uint32_t flags);
uint32_t end_poll(const struct end *end, struct poll_table *table);

/* ---- open sockets: kernel/linux/sockets/stream.c ---- */

/* Calls of a socket; words are the arguments, the descriptor first. */
typedef int socket_call(struct file *file, const uint32_t *words);
socket_call socket_bind, socket_connect, socket_listen, socket_accept;

/* Reads a name; and finds the socket that has it: NULL if it is in no list any more. */
int socket_name_from_user(uint32_t address, uint32_t length, struct socket_name *name);
int socket_find(const struct socket_name *name, struct socket **found);

/* Gives a name to the program, as getsockname does. */
int socket_give_name(const struct socket_name *name, uint32_t address, uint32_t length);

/* Gives a value, cut to the room that the word at `length` says, which then is its size. */
int give_sized(uint32_t address, uint32_t length, const void *value, uint32_t size);

/* ---- /proc/net/unix: kernel/linux/sockets/list.c ---- */

extern struct socket *open_sockets;

/* With the number of its inode, which all have. */
void socket_list_add(struct socket *socket, uint32_t inode);
void socket_list_remove(struct socket *socket);

/* ---- files that are sent: kernel/linux/sockets/sent_files.c ---- */

/* Sends the files that a message's control data names, together with the byte that is written next,
 * whose number is *at. -EBADF, -EFAULT, -EINVAL, -ENOMEM: none is sent. */
int end_send_files(struct end *from, const struct linux_message *message, uint32_t *at);

/* Is a header of control data, with what follows it, the sender's true credentials? 0, -EFAULT,
 * -EINVAL, or -EPERM. */
int credentials_check(const struct linux_control *header, uint32_t address);

/* Says who has sent a message, before other control data, if the socket passes that on. Returns how
 * many bytes of the message's room it took, which are gone; without enough it sets MSG_CTRUNC. */
uint32_t credentials_give(const struct socket *to, int32_t pid, struct linux_message *message);

/* That byte could not be written: takes the current task's files back. */
void end_unsend_files(struct end *from, uint32_t at);

/* How many bytes can be read without those that the next files come with; and whether files come
 * with the next byte. */
uint32_t end_limit(const struct end *end);
bool end_has_files(const struct end *end);

/* Bytes were read: the files that came with them get descriptors, which are the message's control
 * data; NULL: they are dropped. */
void end_receive_files(struct end *to, struct linux_message *message, uint32_t flags);

/* Nobody will receive what is on the way here. May sleep. */
void end_drop_files(struct end *end);

/* The same for sockets that only other ones on the way have, in a circle. */
void socket_collect(void);

/* ---- datagrams: kernel/linux/sockets/datagram.c ---- */

socket_call datagram_connect, datagram_peer_name, datagram_send_to, datagram_send_message,
    datagram_receive_from, datagram_receive_message;

/* Ends what the socket does not do any more. */
void datagram_shut(struct socket *socket, bool receives, bool sends);

/* Makes two sockets each other's peers. */
void datagram_pair(struct file *one, struct file *other);
