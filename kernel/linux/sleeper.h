/*
 * Tasks that sleep in a list until another task says how each goes on: the one that waits puts a
 * sleeper on its stack into the list, with what others need to know of it; they choose whom to wake
 * (futex(2), semop(2)).
 *
 *	struct lock_waiter { struct sleeper sleeper; struct futex_key key; ... }
 *
 *	list --> [ sleeper, key ] --> [ sleeper, key ] --> ...
 */
#pragma once

#include "kernel/linux/list_each.h"
#include "kernel/task/wait.h"

struct sleeper {
	struct list link;
	struct wait_queue queue;
	bool is_over;
	int result;
};

/* Ends a sleep with this result: the sleeper is in no list from now on. */
static inline void sleeper_end(struct sleeper *sleeper, int result)
{
	sleeper->is_over = true;
	sleeper->result = result;
	list_remove(&sleeper->link);
	wait_wake(&sleeper->queue);
}

/* Sleeps at the end of the list until the sleep is ended, with a result; or -ERESTART for a signal,
 * -ETIMEDOUT after the deadline. Then the list itself may be gone. */
static inline int sleeper_wait(struct sleeper *sleeper, struct list *list, uint64_t deadline)
{
	list_append(list, &sleeper->link);
	int error = wait_event_until(&sleeper->queue, sleeper->is_over, deadline);

	if (sleeper->is_over)
		return sleeper->result;
	list_remove(&sleeper->link);
	return error;
}
