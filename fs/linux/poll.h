/* Where a task that polls waits. */
#pragma once

#include "kernel/task/wait.h"

struct file;

/* A task is in many queues at a time, one for each thing that may become ready. The task that polls
 * has the table, and leaves the queues when it is woken. */
struct poll_table {
	struct waiter *waiters; /* room for `limit` of them */
	uint32_t count, limit;
	struct file **files; /* held while it waits, because another task may close them */
	uint32_t held;
};

/* For struct file_ops's poll. Table NULL: the caller only asks. Does not sleep. */
static inline void poll_add(struct poll_table *table, struct wait_queue *queue)
{
	if (table && table->count < table->limit)
		wait_join(queue, &table->waiters[table->count++]);
}
