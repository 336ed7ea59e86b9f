/* Waiting for something to happen. Until lesson 4 there is one task, and kernel/task/wait_idle.c
 * halts the processor; from then on kernel/task/wait.c lets other tasks run. */
#pragma once

#include "kernel/cpu/interrupts.h"

struct task;

#define WAIT_FOREVER UINT64_MAX

/* The tasks that wait for one event. A zeroed one is ready for use. */
struct wait_queue {
	struct waiter *first; /* in the order in which they came */
};

/* A task's entry in a queue; it is on the task's stack. A task that waits for several queues has an
 * entry in each.
 *
 * Instead of a task a function may wait (`calls`, set after wait_join): wait_wake calls it with
 * interrupts disabled, from any context. It must not change the queue, which wait_wake_one is not
 * used for. */
struct waiter {
	union {
		struct task *task;
		void (*function)(struct waiter *waiter);
	};
	struct wait_queue *queue;
	struct waiter *next;
	bool is_woken, calls; /* woken since wait_join */
};

/*
 * Sleeps until wait_wake(queue), for a signal, or up to a time of time_ns(). Interrupts must be
 * disabled, and are so when it returns; they are enabled meanwhile. Returns 0, -ERESTART if a
 * signal is pending, or -ETIMEDOUT. May return early: call it in a loop, as wait_event does.
 */
int wait_sleep_until(struct wait_queue *queue, uint64_t deadline_ns);

/* The same without a deadline, and signals do not end it. Only for an event that is certain to
 * come. */
void wait_sleep_blocked(struct wait_queue *queue);

/*
 * For several queues at once, as poll needs it: join all, check whether anything has happened
 * already, sleep in wait_any until one of them was woken since it was joined, leave all. wait_any
 * keeps the interrupt flag. It returns as wait_sleep_until does, and may return early, too.
 */
void wait_join(struct wait_queue *queue, struct waiter *waiter);
int wait_any(const struct waiter *waiters, unsigned count, uint64_t deadline_ns);
void wait_leave(struct waiter *waiter);

/* Sleeps for at least this long; signals do not end it. */
void msleep(uint32_t milliseconds);

/* Wakes all that sleep in the queue. From any context. */
void wait_wake(struct wait_queue *queue);

/* Wakes the task of highest priority, among equals the one that has waited longest. From any
 * context. */
void wait_wake_one(struct wait_queue *queue);

/*
 * Sleeps until the condition holds. It is checked with interrupts disabled, so that no wake-up can
 * come between the check and the sleep. The result is 0 or -ERESTART, which the system call returns
 * as it is: kernel/process/signal_deliver.c turns it into EINTR, or makes the call again.
 */
#define wait_event(queue, condition) wait_event_until(queue, condition, WAIT_FOREVER)

/* The same, or -ETIMEDOUT when the condition does not hold until deadline_ns. */
#define wait_event_until(queue, condition, deadline_ns)                                            \
	({                                                                                         \
		bool enabled = interrupts_disable();                                               \
		uint64_t until = deadline_ns; /* evaluated once: it may depend on the time */      \
		int result = 0;                                                                    \
                                                                                                   \
		while (!(condition) && (result = wait_sleep_until(queue, until)) == 0)             \
			;                                                                          \
		interrupts_restore(enabled);                                                       \
		result;                                                                            \
	})
