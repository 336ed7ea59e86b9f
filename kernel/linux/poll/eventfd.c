/*
 * Counters as files: eventfd(2). A write adds a number of 64 bits, a read takes the sum (or, of a
 * semaphore, 1), and both wait until they can. Programs wake their own poll with one.
 */
#include <stddef.h>

#include "fs/files.h"
#include "fs/linux/poll.h"
#include "kernel/abi/epoll.h"
#include "kernel/abi/poll.h"
#include "kernel/cpu/interrupts.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/files/calls.h"
#include "kernel/syscall/syscall.h"

#define COUNT_MAX (UINT64_MAX - 1)

struct event_file {
	uint64_t count;
	bool is_semaphore;
	struct wait_queue changed;
};

static struct pool pool = POOL_INITIALIZER(struct event_file);

/* One of the two, with interrupts disabled. False: it must wait. */
typedef bool event_step(struct event_file *mine, uint64_t *number);

static bool take(struct event_file *mine, uint64_t *number)
{
	*number = mine->is_semaphore && mine->count ? 1 : mine->count;
	mine->count -= *number;
	return *number > 0;
}

static bool add(struct event_file *mine, uint64_t *number)
{
	if (*number > COUNT_MAX - mine->count)
		return false;
	mine->count += *number;
	return true;
}

static int change(struct file *file, event_step *step, uint64_t *number)
{
	struct event_file *mine = file->private;
	bool enabled = interrupts_disable();
	int error = step(mine, number)	       ? 0
		    : file->flags & O_NONBLOCK ? -EAGAIN
					       : wait_event(&mine->changed, step(mine, number));

	interrupts_restore(enabled);
	if (!error)
		wait_wake(&mine->changed);
	return error;
}

static int event_read(struct file *file, struct buffer *to, uint64_t offset)
{
	uint64_t number;

	if (to->length < sizeof(number))
		return -EINVAL;
	int error = change(file, take, &number);

	return error ? error : buffer_put(to, &number, sizeof(number));
}

static int event_write(struct file *file, struct buffer *from, uint64_t offset)
{
	uint64_t number;

	if (from->length < sizeof(number))
		return -EINVAL;
	if (buffer_take(from, &number, sizeof(number)) != sizeof(number))
		return -EFAULT;
	if (number > COUNT_MAX)
		return -EINVAL;
	int error = change(file, add, &number);

	return error ? error : (int)sizeof(number);
}

static uint32_t event_poll(struct file *file, struct poll_table *table)
{
	struct event_file *mine = file->private;

	poll_add(table, &mine->changed);
	return (mine->count > 0 ? POLLIN : 0) | (mine->count < COUNT_MAX ? POLLOUT : 0);
}

static void event_release(struct file *file)
{
	pool_free(&pool, file->private);
}

static const struct file_ops event_ops = {
	.read = event_read,
	.write = event_write,
	.poll = event_poll,
	.release = event_release,
	.is_stream = true,
};

static int event_create(uint32_t count, uint32_t flags)
{
	static struct anonymous kind = { .kind = "[eventfd]" };

	if (flags & ~(EFD_SEMAPHORE | O_NONBLOCK | O_CLOEXEC))
		return -EINVAL;
	struct file *file = file_of_pool(&kind, &event_ops, &pool, O_RDWR | (flags & O_NONBLOCK));

	if (!file)
		return -ENOMEM;
	struct event_file *mine = file->private;

	mine->count = count;
	mine->is_semaphore = flags & EFD_SEMAPHORE;
	return descriptor_add(file, flags);
}

CALL(sys_eventfd, event_create(frame->ebx, 0))
CALL(sys_eventfd2, event_create(frame->ebx, frame->ecx))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 323, "eventfd", "d", sys_eventfd },
	{ 328, "eventfd2", "dx", sys_eventfd2 },
};
