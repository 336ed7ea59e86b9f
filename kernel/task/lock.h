/*
 * Locks that sleep: mutexes and counting semaphores. Zeroed ones are ready for use: a mutex that is
 * free, a semaphore of 0. Not for interrupt handlers, except semaphore_up.
 *
 * A task that waits for a mutex lends its priority to the task that holds it, and through that one
 * to the task that it waits for, and so on (priority inheritance): a task of low priority cannot
 * delay one of high priority for longer than it holds the mutex.
 */
#pragma once

#include "kernel/task/wait.h"

#define DONATION_DEPTH 8 /* owners in a row that inherit from one waiting task */

struct mutex {
	struct task *owner; /* NULL: free */
	struct wait_queue waiters;
	struct mutex *next_held; /* of the same owner */
};

/* Takes the mutex; sleeps, as TASK_BLOCKED, while another task holds it. Panics if the current task
 * holds it already. */
void mutex_lock(struct mutex *mutex);

/* Hands the mutex to the waiting task of highest priority, among equals to the one that has waited
 * longest. Panics if the current task does not hold it. */
void mutex_unlock(struct mutex *mutex);

struct semaphore {
	uint32_t count;
	struct wait_queue waiters;
};

/* Takes one; sleeps, as TASK_BLOCKED, while there is none. */
void semaphore_down(struct semaphore *semaphore);

/* Gives one, to the waiting task of highest priority. From any context. */
void semaphore_up(struct semaphore *semaphore);
