/*
 * Counters as files: eventfd(2). A write adds a number of 64 bits, a read takes the sum (or, of a
 * semaphore, 1), and both wait until they can. Programs wake their own poll with one.
 *
 * An interrupt handler may count, too (kernel/linux/time/timerfd.c): so interrupts are disabled
 * while a number is taken or added, and the copy to the program comes after that.
 */
#include "kernel/linux/poll/eventfd.h"

#include "kernel/abi/epoll.h"
#include "kernel/abi/poll.h"

#define COUNT_MAX (UINT64_MAX - 1)

static struct pool event_pool = POOL_INITIALIZER(struct event_counter);

/* One of the two, with interrupts disabled. False: it must wait. */
typedef bool event_step(struct event_counter *event, uint64_t *number);

/* Gives all, or 1 of a semaphore. */
static bool event_take(struct event_counter *event, uint64_t *number)
{
	*number = event->is_semaphore && event->count ? 1 : event->count;
	event->count -= *number;
	return *number > 0;
}

/* The sum stays below 2^64 - 1. */
static bool event_add(struct event_counter *event, uint64_t *number)
{
	if (*number > COUNT_MAX - event->count)
		return false;
	event->count += *number;
	return true;
}

/* The other side may go on afterwards: both wait in one queue. */
static int event_change(struct file *file, event_step *step, uint64_t *number)
{
	struct event_counter *event = file->private;
	bool enabled = interrupts_disable();
	int error = step(event, number)	       ? 0
		    : file->flags & O_NONBLOCK ? -EAGAIN
					       : wait_event(&event->changed, step(event, number));

	interrupts_restore(enabled);
	if (!error)
		wait_wake(&event->changed);
	return error;
}

/* Nothing is taken if the buffer is too short. */
int event_read(struct file *file, struct buffer *to, uint64_t unused)
{
	uint64_t number;

	if (to->length < sizeof(number))
		return -EINVAL;
	int error = event_change(file, event_take, &number);

	return error ? error : buffer_put(to, &number, sizeof(number));
}

/* -EINVAL for 2^64 - 1, which never fits. */
static int event_write(struct file *file, struct buffer *from, uint64_t offset)
{
	uint64_t number;

	if (from->length < sizeof(number))
		return -EINVAL;
	if (buffer_take(from, &number, sizeof(number)) != sizeof(number))
		return -EFAULT;
	if (number > COUNT_MAX)
		return -EINVAL;
	int error = event_change(file, event_add, &number);

	return error ? error : (int)sizeof(number);
}

/* It can be written as long as 1 more fits. */
static uint32_t event_poll(struct file *file, struct poll_table *table)
{
	struct event_counter *event = file->private;

	poll_add(table, &event->changed);
	return (event->count > 0 ? POLLIN : 0) | (event->count < COUNT_MAX ? POLLOUT : 0);
}

/* Nobody waits: each that does holds the file. */
static void event_release(struct file *file)
{
	pool_free(&event_pool, file->private);
}

/* As a stream it has no offset: lseek and pread are -ESPIPE. */
static const struct file_ops event_ops = {
	.read = event_read,
	.write = event_write,
	.poll = event_poll,
	.release = event_release,
	.is_stream = true,
};

/* EFD_NONBLOCK and EFD_CLOEXEC are open's flags. */
static int event_create(uint32_t count, uint32_t flags)
{
	static struct anonymous kind = { .kind = "[eventfd]" };
	const struct event_counter event = { count, .is_semaphore = flags & EFD_SEMAPHORE };

	if (flags & ~(EFD_SEMAPHORE | O_NONBLOCK | O_CLOEXEC))
		return -EINVAL;
	return descriptor_of_pool(&kind, &event_ops, &event_pool, &event, flags);
}

SYSCALL(323, sys_eventfd, "d", event_create(frame->ebx, 0))
SYSCALL(328, sys_eventfd2, "dx", event_create(frame->ebx, frame->ecx))
