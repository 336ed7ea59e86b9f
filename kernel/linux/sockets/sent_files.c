/*
 * Files that are sent through sockets (SCM_RIGHTS in unix(7)). Each is on the way to an end
 * together with one byte, which has a number in the end's pipe; who reads that byte gets the file.
 *
 *	pipe	... read up to 10, written up to 14		b b b b
 *	files	file A at 10, file B at 12			A   B
 *	recvmsg of 10 bytes	gives 2 bytes and A; the next one 2 bytes and B
 *
 * What is on the way holds a reference. So sockets can hold each other in a circle that no program
 * reaches any more: whenever a socket is closed, these are looked for, as on Linux.
 */
#include "kernel/linux/sockets/sockets.h"

#include <stddef.h>

#include "fs/files.h"
#include "fs/vfs/inode.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/files/calls.h"
#include "kernel/process/process.h"
#include "kernel/task/task.h"
#include "mm/pool.h"

struct sent_file {
	struct file *file; /* a reference */
	uint32_t at;	   /* the byte's number */
	const struct task *sender;
	struct sent_file *next;
};

static struct pool pool = POOL_INITIALIZER(struct sent_file);

static const struct pipe *pipe_to(const struct end *end)
{
	return end->reader->private;
}

/* The socket that a file is, or NULL. Of a socket's path a file is only a place. */
static struct socket *socket_of(const struct file *file)
{
	return inode_is(file->inode, S_IFSOCK) ? file->private : NULL;
}

static int put(struct end *to, struct file *file, uint32_t at)
{
	struct sent_file *sent = file ? pool_alloc(&pool) : NULL, **last = &to->first;

	if (!sent)
		return file ? -ENOMEM : -EBADF;
	*sent = (struct sent_file){ file, at, current, NULL };
	file->references++;
	if (socket_of(file))
		socket_of(file)->flying++;
	while (*last)
		last = &(*last)->next;
	*last = sent;
	return 0;
}

/* Takes a file off the way; its reference is the caller's. */
static struct file *take(struct sent_file **at)
{
	struct sent_file *sent = *at;
	struct file *file = sent->file;

	*at = sent->next;
	if (socket_of(file))
		socket_of(file)->flying--;
	pool_free(&pool, sent);
	return file;
}

/* The descriptors after one header. */
static int put_all(struct end *to, uint32_t address, uint32_t count, uint32_t at)
{
	int error = count <= SCM_MAX ? 0 : -EINVAL;

	for (uint32_t i = 0; i < count && !error; i++) {
		uint32_t descriptor;

		error = copy_from_user(&descriptor, address + 4 * i, sizeof(descriptor)) != 0
			    ? -EFAULT
			    : put(to, files_get(current->process->files, descriptor), at);
	}
	return error;
}

/* Linux lets root say something else. */
int credentials_check(const struct linux_control *header, uint32_t address)
{
	struct linux_credentials said;

	if (header->level != SOL_SOCKET || header->type != SCM_CREDENTIALS ||
	    header->length != sizeof(*header) + sizeof(said))
		return -EINVAL;
	if (copy_from_user(&said, address + sizeof(*header), sizeof(said)) != 0)
		return -EFAULT;
	return said.pid == current->process->leader->task->pid && !said.user && !said.group
		   ? 0
		   : -EPERM;
}

uint32_t credentials_give(const struct socket *to, int32_t pid, struct linux_message *message)
{
	struct {
		struct linux_control header;
		struct linux_credentials sender;
	} control = { { sizeof(control), SOL_SOCKET, SCM_CREDENTIALS }, { pid, 0, 0 } };

	if (!to->passes_credentials)
		return 0;
	if (message->control_length < sizeof(control) ||
	    give(message->control, &control, sizeof(control)) != 0) {
		message->flags |= MSG_CTRUNC;
		return 0;
	}
	message->control += sizeof(control);
	message->control_length -= sizeof(control);
	return sizeof(control);
}

/* Other control data than descriptors and credentials is refused. */
int end_send_files(struct end *from, const struct linux_message *message, uint32_t *at)
{
	struct end *to = end_other(from);
	uint32_t address = message->control, left = message->control_length;
	struct linux_control header;
	int error = 0;

	*at = pipe_to(to)->written;
	while (!error && left >= sizeof(header)) {
		if (copy_from_user(&header, address, sizeof(header)) != 0)
			error = -EFAULT;
		else if (header.length < sizeof(header) || header.length > left)
			error = -EINVAL;
		else if (header.level != SOL_SOCKET)
			; /* for another protocol */
		else if (header.type != SCM_RIGHTS)
			error = credentials_check(&header, address);
		else
			error = put_all(to, address + sizeof(header),
					(header.length - sizeof(header)) / 4, *at);
		uint32_t length = (header.length + 3) & -4u;

		address += length;
		left -= length < left ? length : left;
	}
	if (error)
		end_unsend_files(from, *at);
	return error;
}

void end_unsend_files(struct end *from, uint32_t at)
{
	struct end *to = end_other(from);
	struct sent_file **each = &to->first;

	while (*each)
		if ((*each)->at == at && (*each)->sender == current) {
			file_release(take(each));
			each = &to->first; /* releasing may sleep */
		} else {
			each = &(*each)->next;
		}
}

uint32_t end_limit(const struct end *end)
{
	const struct sent_file *sent = end->first;

	while (sent && sent->at == pipe_to(end)->read)
		sent = sent->next;
	return sent ? sent->at - pipe_to(end)->read : UINT32_MAX;
}

bool end_has_files(const struct end *end)
{
	return end->first && end->first->at == pipe_to(end)->read;
}

static bool has_come(const struct end *end)
{
	return end->first && (int32_t)(pipe_to(end)->read - end->first->at) > 0;
}

/* Gives the file a descriptor, and the program its number. False: not all of it was possible. */
static bool give_file(struct file *file, uint32_t address, uint32_t flags)
{
	int32_t descriptor = descriptor_add(file, flags & MSG_CMSG_CLOEXEC ? O_CLOEXEC : 0);

	if (descriptor >= 0 && give(address, &descriptor, sizeof(descriptor)) == 0)
		return true;
	files_close(current->process->files, descriptor); /* refuses what is not a number */
	return false;
}

void end_receive_files(struct end *to, struct linux_message *message, uint32_t flags)
{
	struct linux_control header = { sizeof(header), SOL_SOCKET, SCM_RIGHTS };
	uint32_t room = message ? message->control_length : 0, cut = 0;

	while (has_come(to)) {
		struct file *file = take(&to->first);

		if (header.length + 4 <= room && !cut &&
		    give_file(file, message->control + header.length, flags)) {
			header.length += 4;
			continue;
		}
		if (header.length + 4 > room || cut)
			file_release(file);
		cut = MSG_CTRUNC;
	}
	if (!message)
		return;
	bool has_any = header.length > sizeof(header);

	if (has_any && give(message->control, &header, sizeof(header)) != 0)
		cut = MSG_CTRUNC;
	message->control_length = has_any ? header.length : 0;
	message->flags |= cut;
}

/* Files that nobody will receive. Releasing one may drop the next ones: they are released one after
 * the other, not one inside the other. */
static struct sent_file *dropped;

static bool drop(struct end *end)
{
	struct sent_file **last = &dropped;

	while (*last)
		last = &(*last)->next;
	*last = end->first;
	end->first = NULL;
	return dropped;
}

static void release_dropped(void)
{
	static bool is_busy;

	if (is_busy)
		return;
	is_busy = true;
	while (dropped)
		file_release(take(&dropped));
	is_busy = false;
}

void end_drop_files(struct end *end)
{
	drop(end);
	release_dropped();
}

/* ---- sockets that only sockets have ---- */

/* Who can receive the end's files reaches the sockets among them. Is one of them new? */
static bool reach(struct end *end)
{
	bool is_new = false;

	for (const struct sent_file *sent = end->first; sent; sent = sent->next) {
		struct socket *socket = socket_of(sent->file);

		if (socket && !socket->is_reached)
			is_new = socket->is_reached = true;
	}
	return is_new;
}

/* Does something with each end that the sockets have which are reached, or are not: those that wait
 * to be accepted are the listener's. Returns whether one of them says so. */
static bool each_end(bool reached, bool (*act)(struct end *))
{
	bool some = false;

	for (struct socket *each = open_sockets; each; each = each->next_open) {
		if (each->is_reached != reached)
			continue;
		some |= each->end && act(each->end);
		for (struct pair *pair = each->first; pair; pair = pair->next)
			some |= act(&pair->ends[1]);
	}
	return some;
}

/* Marks what programs have, then what can be received from there, and drops what the others have on
 * the way to them: their last references are among that. */
void socket_collect(void)
{
	if (pool.used == 0)
		return;
	for (struct socket *each = open_sockets; each; each = each->next_open)
		each->is_reached = each->file->references > each->flying;
	while (each_end(true, reach))
		;
	if (each_end(false, drop))
		release_dropped();
}
