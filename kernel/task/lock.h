/*
 * Locks that sleep: mutexes and counting semaphores. Zeroed ones are ready for use: a mutex that is
 * free, a semaphore of 0. Not for interrupt handlers, but for semaphore_up.
 *
 * Whoever waits for a mutex lends its urgency to the task that holds it, and through that one to
 * the task that it waits for, and so on: a task that nobody hurries cannot hold up one in a hurry
 * for longer than it holds the mutex.
 */
#pragma once

#include <stdint.h>

#include "kernel/task/wait.h"

#define DONATION_DEPTH 8 /* how many tasks in a row inherit the urgency of a waiting one */

struct mutex {
	struct task *owner; /* NULL: free */
	struct wait_queue waiters;
	struct mutex *next_held; /* of the same owner */
};

/* Takes the mutex; sleeps, deaf to signals, while another task has it. Panics when the current task
 * has it already. */
void mutex_lock(struct mutex *mutex);

/* Hands the mutex to the most urgent of those who wait, of equals to the one that has waited
 * longest. Panics when the current task does not hold it. */
void mutex_unlock(struct mutex *mutex);

struct semaphore {
	uint32_t count;
	struct wait_queue waiters;
};

/* Takes one; sleeps, deaf to signals, while there is none. */
void semaphore_down(struct semaphore *semaphore);

/* Gives one, to the most urgent of those who wait. From any context. */
void semaphore_up(struct semaphore *semaphore);
