/* Counters that files read: eventfd(2), timerfd_create(2). */
#pragma once

#include "fs/linux/poll.h"
#include "kernel/linux/files/calls.h"

/* At the beginning of the file's private data. An interrupt handler may add to it. */
struct event_counter {
	uint64_t count;
	bool is_semaphore; /* a read takes 1, not all */
	struct wait_queue changed;
};

/* The read operation: waits, or with O_NONBLOCK does not, until the count is not 0; gives what it
 * takes of it as 64 bits. -EINVAL for a smaller buffer, -EAGAIN, -ERESTART. */
int event_read(struct file *file, struct buffer *to, uint64_t unused);
