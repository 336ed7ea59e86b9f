/*
 * /proc/net/unix: every open socket, in Linux's columns.
 *
 *	Num       RefCount Protocol Flags    Type St Inode Path
 *	c1234560: 00000002 00000000 00010000 0001 01     7 /tmp/socket
 *
 * All sockets have one inode here. Programs look for paths, and for the flag of those that listen.
 */
#include <stddef.h>

#include "fs/proc/procfs.h"
#include "kernel/linux/sockets/sockets.h"

#define LISTENS	    0x10000u
#define UNCONNECTED 1
#define CONNECTED   3
#define REFERENCES  2 /* of one that is open; a connection has one more */
#define PAGES_ORDER 2u

struct socket *open_sockets;
static uint32_t inode_number;

void socket_list_add(struct socket *socket, uint32_t inode)
{
	inode_number = inode;
	socket->next_open = open_sockets;
	open_sockets = socket;
}

void socket_list_remove(struct socket *socket)
{
	struct socket **at = &open_sockets;

	while (*at != socket)
		at = &(*at)->next_open;
	*at = socket->next_open;
}

/* The NUL bytes of an abstract name are shown as "@". */
static void show_name(struct procfs_text *text, const struct socket_name *name)
{
	uint32_t begin = offsetof(struct linux_socket_name, path);
	bool is_path = name->text.path[0];

	for (uint32_t i = 0; begin + i + is_path < name->length; i++)
		procfs_print(text, "%s%c", i ? "" : " ", name->text.path[i] ?: '@');
}

static void show_socket(struct procfs_text *text, const struct socket *socket)
{
	const struct end *end = socket->end;
	bool is_connected = end || socket->peer;
	bool was_accepted = end && end == &end->pair->ends[1] && !socket->name.length;

	procfs_print(text, "%08x: %08x %08x %08x %04x %02x %5u", (uint32_t)(uintptr_t)socket,
		     REFERENCES + is_connected, 0, socket->backlog ? LISTENS : 0,
		     socket->is_datagram ? SOCK_DGRAM : SOCK_STREAM,
		     is_connected ? CONNECTED : UNCONNECTED, inode_number);
	show_name(text, was_accepted ? &end->pair->name : &socket->name);
	procfs_print(text, "\n");
}

static void show_sockets(struct procfs_text *text, const struct task *unused)
{
	procfs_print(text, "Num       RefCount Protocol Flags    Type St Inode Path\n");
	for (const struct socket *each = open_sockets; each; each = each->next_open)
		show_socket(text, each);
}

static struct procfs_entry lists[] = { { "unix", .show = show_sockets, .order = PAGES_ORDER } };
static struct procfs_entry net[] = { { "net", PROCFS_ENTRIES(lists) } };
PROCFS(&procfs_root, net)
