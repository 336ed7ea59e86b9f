/* Where a task that polls waits. */
#pragma once

#include <stdint.h>

#include "kernel/task/wait.h"

struct file;

struct poll_table {
	struct waiter *waiters; /* room for `limit` of them */
	uint32_t count, limit;
	struct file **files; /* held while it waits, because another task may close them */
	uint32_t held;
};

static inline void poll_add(struct poll_table *table, struct wait_queue *queue)
{
	if (table && table->count < table->limit)
		wait_join(queue, &table->waiters[table->count++]);
}
