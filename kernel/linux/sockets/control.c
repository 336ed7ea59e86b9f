/*
 * Control data of messages (cmsg(3)): files that are sent (SCM_RIGHTS in unix(7)), and who sends
 * (SCM_CREDENTIALS).
 *
 *	sendmsg		control data: descriptors 3, 7	->	message: references to two files
 *	recvmsg		message: two files		->	control data: descriptors 4, 5
 *
 * A file in a message is in flight. So sockets can hold each other in a circle that no program
 * reaches any more: whenever a socket is closed, these are looked for, as on Linux.
 */

#include "kernel/linux/files/calls.h"
#include "kernel/linux/sockets/sockets.h"

static uint32_t files_in_flight; /* in all messages */

/* The socket that a file is, or NULL. A file of a socket's path (O_PATH) has no private data. */
static struct socket *socket_of_file(const struct file *file)
{
	return file && inode_is(file->inode, S_IFSOCK) ? file->private : NULL;
}

/* Only sockets can make a circle, but any file can end one. */
static void count_in_flight(const struct file *file, int change)
{
	files_in_flight += change;
	if (socket_of_file(file))
		socket_of_file(file)->in_flight += change;
}

/* The message has room for it. From now on the file may be in flight to several sockets, but only
 * this message has this reference. */
void message_add_file(struct message *message, struct file *file)
{
	message->files[message->file_count++] = file;
	count_in_flight(file, 1);
}

struct file *message_take_file(struct message *message, uint32_t index)
{
	struct file *file = message->files[index];

	message->files[index] = NULL;
	count_in_flight(file, -1);
	return file;
}

/* ---- sending ---- */

uint32_t control_files(const struct linux_message *control)
{
	uint32_t words = control->control_length / sizeof(uint32_t);

	return words < SCM_MAX ? words : SCM_MAX;
}

/* The descriptors after one header. */
static int send_descriptors(struct message *message, uint32_t address, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t descriptor;

		if (copy_from_user(&descriptor, address + 4 * i, sizeof(descriptor)) != 0)
			return -EFAULT;
		struct file *file = file_hold(descriptor);

		if (!file || message->file_count == SCM_MAX) {
			file_drop(file);
			return file ? -EINVAL : -EBADF;
		}
		message_add_file(message, file);
	}
	return 0;
}

/* A program may say who sends only if it tells the truth. Linux lets root say something else. */
static int credentials_check(const struct linux_control *header, uint32_t address)
{
	struct linux_credentials said;

	if (header->type != SCM_CREDENTIALS || header->length != sizeof(*header) + sizeof(said))
		return -EINVAL;
	if (copy_from_user(&said, address, sizeof(said)) != 0)
		return -EFAULT;
	return said.pid == calling_pid() && !said.user && !said.group ? 0 : -EPERM;
}

/* Each part is a header with its length, and what follows it; other levels are other protocols'.
 *
 *	length 20, SOL_SOCKET, SCM_RIGHTS | 3 | 7 |	the next one, at a multiple of 4 bytes
 *
 * What has been added before an error goes with the message. */
int control_send(struct message *message, const struct linux_message *control)
{
	uint32_t address = control->control, left = control->control_length;
	struct linux_control header;
	int error = 0;

	while (!error && left >= sizeof(header)) {
		if (copy_from_user(&header, address, sizeof(header)) != 0)
			return -EFAULT;
		uint32_t length = (header.length + 3) & -4u, data = address + sizeof(header);

		if (header.length < sizeof(header) || header.length > left)
			error = -EINVAL;
		else if (header.level == SOL_SOCKET && header.type == SCM_RIGHTS)
			error =
			    send_descriptors(message, data, (header.length - sizeof(header)) / 4);
		else if (header.level == SOL_SOCKET)
			error = credentials_check(&header, data);
		address += length;
		left -= length < left ? length : left;
	}
	return error;
}

/* ---- receiving ---- */

/* The program has got so much of its control data. */
static void control_advance(struct linux_message *control, uint32_t length)
{
	control->control += length;
	control->control_length -= length;
}

/* Nobody can be anything but root. */
static void give_credentials(int32_t pid, struct linux_message *control)
{
	const struct {
		struct linux_control header;
		struct linux_credentials sender;
	} part = { { sizeof(part), SOL_SOCKET, SCM_CREDENTIALS }, { pid, 0, 0 } };

	if (control->control_length < sizeof(part) ||
	    give(control->control, &part, sizeof(part)) != 0)
		control->flags |= MSG_CTRUNC;
	else
		control_advance(control, sizeof(part));
}

/* Gives the file a descriptor, and the program its number. False: not all of it was possible. The
 * reference is gone in any case. */
static bool give_descriptor(struct file *file, uint32_t address, uint32_t flags)
{
	int32_t descriptor = descriptor_add(file, flags & MSG_CMSG_CLOEXEC ? O_CLOEXEC : 0);

	if (descriptor >= 0 && give(address, &descriptor, sizeof(descriptor)) == 0)
		return true;
	files_close(current->process->files, descriptor); /* refuses what is not a number */
	return false;
}

/* After the first file for which there is no room all are dropped. The header comes last: it says
 * how many there are. */
static void give_files(struct message *message, struct linux_message *control, uint32_t flags)
{
	struct linux_control header = { sizeof(header), SOL_SOCKET, SCM_RIGHTS };
	uint32_t room = control->control_length, begin = control->control;

	for (uint32_t i = 0; i < message->file_count; i++) {
		struct file *file = message_take_file(message, i);

		if (header.length + 4 > room)
			file_release(file);
		else if (give_descriptor(file, begin + header.length, flags))
			header.length += 4;
		if (header.length < sizeof(header) + 4 * (i + 1)) {
			room = 0;
			control->flags |= MSG_CTRUNC;
		}
	}
	message->file_count = 0;
	if (header.length > sizeof(header) && give(begin, &header, sizeof(header)) == 0)
		control_advance(control, header.length);
}

/* A transfer may get bytes of several messages of a stream; it says who has sent the first one.
 * With MSG_PEEK the files stay where they are, and the program gets none; on Linux it gets
 * references. */
void control_receive(const struct socket *socket, struct message *message,
		     struct transfer *transfer)
{
	struct linux_message none = { .control_length = 0 };
	struct linux_message *control = transfer->control ?: &none;

	if (transfer->name && !transfer->pid)
		*transfer->name = socket->is_datagram ? message->from : socket->peer_name;
	if (socket->passes_credentials && !transfer->pid)
		give_credentials(message->pid, control);
	if (message->file_count && !(transfer->flags & MSG_PEEK))
		give_files(message, control, transfer->flags);
}

/* ---- messages that nobody receives ---- */

/* Releasing a file may free more messages: they are freed one after the other, not one inside the
 * other. */
void message_free(struct message *message)
{
	static struct list dropped = LIST_EMPTY(dropped);
	static bool is_busy;

	list_append(&dropped, &message->link);
	if (is_busy)
		return;
	is_busy = true;
	while (!list_is_empty(&dropped)) {
		message = list_entry(dropped.next, struct message, link);
		list_remove(&message->link);
		for (uint32_t i = 0; i < message->file_count; i++)
			file_release(message_take_file(message, i));
		page_free(message, message->order);
	}
	is_busy = false;
}

/* Who receives a socket's messages reaches the sockets among their files. Is one of them new? */
static bool reach_through(const struct socket *socket)
{
	bool is_new = false;

	list_for_each(const struct message, message, &socket->messages, link)
		for (uint32_t i = 0; i < message->file_count; i++) {
			struct socket *sent = socket_of_file(message->files[i]);

			if (sent && !sent->is_reached)
				is_new = sent->is_reached = true;
		}
	return is_new;
}

/* Moves the messages that have files out of a queue. */
static void unlink_files(struct socket *socket, struct list *to)
{
	list_for_each_safe(struct message, message, &socket->messages, link)
		if (message->file_count) {
			list_remove(&message->link);
			list_append(to, &message->link);
		}
}

/* Marks what programs have, then what can be received from there. The others' last references are
 * in the messages to each other: these are dropped. A connection that nobody has accepted is in
 * flight to its listener. */
void socket_collect(void)
{
	struct list unreached = LIST_EMPTY(unreached);
	bool is_new = true;

	if (files_in_flight == 0)
		return;
	list_for_each(struct socket, each, &open_sockets, link)
		each->is_reached = each->file->references > each->in_flight;
	while (is_new) {
		is_new = false;
		list_for_each(struct socket, each, &open_sockets, link)
			is_new |= each->is_reached && reach_through(each);
	}
	list_for_each(struct socket, each, &open_sockets, link)
		if (!each->is_reached)
			unlink_files(each, &unreached);
	while (!list_is_empty(&unreached)) {
		struct message *message = list_entry(unreached.next, struct message, link);

		list_remove(&message->link);
		message_free(message);
	}
}
