/*
 * Names of sockets (unix(7)). A name is a path, whose inode is of the type socket, or any bytes
 * after a NUL: then it is abstract, and in no directory.
 *
 *	bind "/tmp/s"		makes the inode, which the socket has a reference to from then on
 *	connect "/tmp/s"	finds the inode, and by that the socket
 *	connect "\0s"		finds the socket by its bytes
 */

#include "fs/vfs/path.h"
#include "fs/vfs/vfs.h"
#include "kernel/linux/files/calls.h"
#include "kernel/linux/sockets/sockets.h"
#include "kernel/report/printk.h"

struct list open_sockets = LIST_EMPTY(open_sockets);

/* An empty name is abstract, and not a path: it gets its bytes when it is bound. */
static bool is_path(const struct socket_name *name)
{
	return name->text.path[0] != '\0';
}

/* Linux's rules: a path ends at its first NUL, or with the name; an abstract name is all the bytes
 * of its length, and NULs among them count. */
int socket_name_from_user(uint32_t address, uint32_t length, struct socket_name *name)
{
	if (length < sizeof(name->text.family) || length > SOCKET_NAME_MAX)
		return -EINVAL;
	*name = (struct socket_name){ .length = length };
	if (copy_from_user(&name->text, address, length) != 0)
		return -EFAULT;
	if (is_path(name))
		name->length =
		    offsetof(struct linux_socket_name, path) + strlen(name->text.path) + 1;
	return name->text.family == AF_UNIX ? 0 : -EINVAL;
}

/* Where a relative path begins: a name means another socket in another directory. */
static struct inode *working_directory(void)
{
	return vfs_working_directory(current->process->files);
}

/* The socket that has an abstract name, which is compared byte by byte; or the inode of the other
 * kind. Or NULL. */
static struct socket *find_bound(const struct socket_name *name, const struct inode *inode)
{
	list_for_each(struct socket, each, &open_sockets, link) {
		bool is_same = inode ? each->inode == inode
				     : each->name.length == name->length &&
					   memcmp(&each->name.text, &name->text, name->length) == 0;

		if (each->is_bound && is_same)
			return each;
	}
	return NULL;
}

/* A path leads to the inode, whatever other links and names that has. */
int socket_find(const struct socket_name *name, struct socket **found)
{
	struct inode *inode = NULL;
	int error = is_path(name)
			? path_find(working_directory(), name->text.path, PATH_FOLLOW, &inode)
			: 0;

	if (error)
		return error;
	*found = find_bound(name, inode);
	inode_put(inode);
	return 0;
}

/* An abstract name that is not in use: five hexadecimal digits, as Linux chooses them. */
static void choose_name(struct socket_name *name)
{
	static uint32_t last;

	do
		name->length = sizeof(name->text.family) + 1 +
			       snprintk(name->text.path + 1, 9, "%05x", ++last);
	while (find_bound(name, NULL));
}

/* A socket's inode, as mknod(2) would make it, with a reference. -EEXIST: the path is there
 * already, even if no socket is bound to it any more. */
static int make_socket_inode(const char *path, struct inode **inode)
{
	uint32_t mode = S_IFSOCK | (0777 & ~current->process->files->umask);
	int error = vfs_make(working_directory(), path, mode, 0);

	return error ? error : path_find(working_directory(), path, PATH_NAME, inode);
}

/* bind(2). A socket is bound once, and one that was accepted never: it has its listener's name. The
 * inode stays when the socket is closed, so that another bind of the path needs an unlink first. */
int socket_bind(struct socket *socket, const struct trap_frame *frame)
{
	struct inode *inode = NULL;
	struct socket_name name;
	int error = socket_name_from_user(frame->ecx, frame->edx, &name);

	if (!error && name.length == sizeof(name.text.family))
		choose_name(&name);
	if (!error && is_path(&name))
		error = make_socket_inode(name.text.path, &inode);
	else if (!error && find_bound(&name, NULL))
		error = -EADDRINUSE;
	if (!error && (socket->name.length || (socket->is_connected && !socket->is_datagram))) {
		inode_put(inode); /* another task was faster: making an inode sleeps */
		error = -EINVAL;
	}
	if (error)
		return error == -EEXIST ? -EADDRINUSE : error;
	socket->name = name;
	socket->inode = inode;
	socket->is_bound = true;
	return 0;
}

/* The room is read before anything is given, and signed, as getsockname(2) has it. */
int give_sized(uint32_t address, uint32_t length, const void *value, uint32_t size, bool tells_cut)
{
	uint32_t room;

	if (copy_from_user(&room, length, sizeof(room)) != 0)
		return -EFAULT;
	if ((int32_t)room < 0)
		return -EINVAL;
	uint32_t given = room < size ? room : size;

	return give(address, value, given)
		   ?: give(length, tells_cut ? &given : &size, sizeof(size));
}

int socket_give_name(const struct socket_name *name, uint32_t address, uint32_t length)
{
	static const struct socket_name none = { { .family = AF_UNIX }, sizeof(uint16_t) };

	name = name->length ? name : &none;
	return give_sized(address, length, &name->text, name->length, false);
}
