/*
 * /proc/net/unix: every open socket, in Linux's columns.
 *
 *	Num       RefCount Protocol Flags    Type St Inode Path
 *	c1234560: 00000002 00000000 00010000 0001 01     7 /tmp/socket
 *
 * All sockets have one inode here. Programs look for paths, and for the flag of those that listen.
 */

#include "fs/proc/procfs.h"
#include "kernel/linux/sockets/sockets.h"

#define LISTENS	    0x10000u
#define UNCONNECTED 1
#define CONNECTING  2 /* not accepted yet */
#define CONNECTED   3
#define REFERENCES  2 /* of one that is open; a connection has one more */
#define PAGES_ORDER 2u

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
	procfs_print(text, "%08x: %08x %08x %08x %04x %02x %5u", (uint32_t)(uintptr_t)socket,
		     REFERENCES + socket->is_connected, 0, socket->backlog ? LISTENS : 0,
		     socket->is_datagram ? SOCK_DGRAM : SOCK_STREAM,
		     socket->is_embryo	    ? CONNECTING
		     : socket->is_connected ? CONNECTED
					    : UNCONNECTED,
		     socket->file->inode->number);
	show_name(text, &socket->name);
	procfs_print(text, "\n");
}

static void show_sockets(struct procfs_text *text, const struct task *unused)
{
	procfs_print(text, "Num       RefCount Protocol Flags    Type St Inode Path\n");
	list_for_each(const struct socket, each, &open_sockets, link)
		show_socket(text, each);
}

static struct procfs_entry lists[] = { { "unix", .show = show_sockets, .order = PAGES_ORDER } };
PROCFS_ENTRY(&procfs_root, net, "net", PROCFS_ENTRIES(lists))
