/*
 * Files that are sent through sockets (SCM_RIGHTS in unix(7)). Each is on the way to an end
 * together with one byte, which has a number in the end's pipe; who reads that byte gets the file.
 *
 *	pipe	... read up to 10, written up to 14		b b b b
 *	files	file A at 10, file B at 12			A   B
 *	recvmsg of 10 bytes	gives 2 bytes and A; the next one 2 bytes and B
 *
 * What is on the way holds a reference. Sockets must not hold each other in a circle, so one is
 * refused (-ETOOMANYREFS) that is not connected, that has sockets on the way through it, or that
 * would go through one which is on the way itself.
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

static struct end *other(const struct end *end)
{
	return &end->pair->ends[end == end->pair->ends];
}

/* And not only a place, by a socket's path. */
static bool is_socket(const struct file *file)
{
	return inode_is(file->inode, S_IFSOCK) && file->private;
}

/* The connection that a file is an end of, or NULL. */
static struct pair *pair_of(const struct file *file)
{
	const struct end *end = is_socket(file) ? ((struct socket *)file->private)->end : NULL;

	return end ? end->pair : NULL;
}

static int check(const struct file *file, const struct pair *through)
{
	const struct pair *pair = file ? pair_of(file) : NULL;

	if (!file)
		return -EBADF;
	if (!is_socket(file))
		return 0;
	return pair && pair != through && !pair->carried && !through->flying ? 0 : -ETOOMANYREFS;
}

static int put(struct end *to, struct file *file, uint32_t at)
{
	int error = check(file, to->pair);
	struct sent_file *sent = error ? NULL : pool_alloc(&pool), **last = &to->first;

	if (!sent)
		return error ? error : -ENOMEM;
	*sent = (struct sent_file){ file, at, current, NULL };
	file->references++;
	if (pair_of(file)) {
		pair_of(file)->flying++;
		to->pair->carried++;
	}
	while (*last)
		last = &(*last)->next;
	*last = sent;
	return 0;
}

/* Takes a file off the way; its reference is the caller's. */
static struct file *take(struct end *to, struct sent_file **at)
{
	struct sent_file *sent = *at;
	struct file *file = sent->file;

	*at = sent->next;
	if (pair_of(file)) {
		pair_of(file)->flying--;
		to->pair->carried--;
	}
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
	struct end *to = other(from);
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
	struct end *to = other(from);
	struct sent_file **each = &to->first;

	while (*each)
		if ((*each)->at == at && (*each)->sender == current) {
			file_release(take(to, each));
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
		struct file *file = take(to, &to->first);

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

void end_drop_files(struct end *end)
{
	while (end->first)
		file_release(take(end, &end->first));
}
