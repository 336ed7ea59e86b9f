/* Where a task that polls waits. */
#pragma once

#include <stdint.h>

#include "kernel/task/wait.h"

struct poll_table {
	struct waiter *waiters; /* room for `limit` of them */
	uint32_t count, limit;
};

static inline void poll_add(struct poll_table *table, struct wait_queue *queue)
{
	if (table && table->count < table->limit)
		wait_join(queue, &table->waiters[table->count++]);
}
