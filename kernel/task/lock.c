/*
 * Mutexes, which inherit urgency.
 *
 * Without that, a task in a hurry waits for one that nobody lets run (priority inversion):
 *
 *	low	has the mutex, and is pre-empted by medium
 *	high	wants the mutex, and sleeps
 *	medium	computes, for as long as it likes; in effect high waits for medium
 *
 * So a task that waits for a mutex lends its urgency to the owner, and if that waits for another
 * mutex, to that one's owner:
 *
 *	high --waits for--> mutex a --owner--> middle --waits for--> mutex b --owner--> low
 *	middle and low are both as urgent as high, until each unlocks
 *
 * Ownership is handed over: the next owner is chosen by the one that unlocks, so nobody can
 * overtake it. Invariants, with interrupts off: task->held lists the mutexes that a task owns;
 * task->waiting is the one that it sleeps for; what is lent to a task is the best urgency of all
 * that wait for any mutex that it holds. Task context only: locking may sleep.
 */
#include "kernel/task/lock.h"

#include <stddef.h>

#include "kernel/cpu/interrupts.h"
#include "kernel/report/panic.h"
#include "kernel/task/sched.h"

static int urgency(const struct task *task)
{
	return sched_class->urgency(task);
}

/* EXERCISE 4.4 (priorities, part 2: inheritance). All of this is done with interrupts off.
   1. take: the task owns the mutex, which goes to the front of the list of what it holds.
   2. donate: the current task waits for the mutex. Its urgency goes to the owner, unless that has a
   better one; and from there to the owner of the mutex that this one waits for; at most
   DONATION_DEPTH times.
   3. most_urgent: of those who wait for a mutex; NULL if nobody does.
   4. return_loans: what is lent to a task is the best urgency of all that wait for any mutex that
   it still holds.
   5. mutex_lock: ASSERT that the task does not have it yet. If it is free, take it; otherwise join
   its queue, donate, and sleep as TASK_BLOCKED until the previous owner has made this task the
   owner.
   6. mutex_unlock: ASSERT that it is the task's. Out of the list of what is held, and return the
   loans: without them the next owner may be more urgent than this task. Then hand it over, or leave
   it free. The new owner must no longer be in the queue, inherits from those who still are, and
   wakes. Last of all: preempt_check, if interrupts were on. */
/* SOLUTION 4.4 { */
static void take(struct mutex *mutex, struct task *task)
{
	mutex->owner = task;
	mutex->next_held = task->held;
	task->held = mutex;
}

/* A chain that is deeper than DONATION_DEPTH, or a circle (a deadlock), ends all the same. */
static void donate(const struct mutex *mutex)
{
	int lent = urgency(current);

	for (unsigned depth = 0; mutex && depth < DONATION_DEPTH; depth++) {
		struct task *owner = mutex->owner;

		if (urgency(owner) > lent)
			sched_donate(owner, lent);
		mutex = owner->waiting;
	}
}

/* Of equals the first in the queue, which has waited longest. */
static struct waiter *most_urgent(const struct mutex *mutex)
{
	struct waiter *best = mutex->waiters.first;

	for (struct waiter *waiter = best; waiter; waiter = waiter->next)
		if (urgency(waiter->task) < urgency(best->task))
			best = waiter;
	return best;
}

static void return_loans(struct task *task)
{
	int lent = URGENCY_NONE;

	for (const struct mutex *mutex = task->held; mutex; mutex = mutex->next_held) {
		const struct waiter *best = most_urgent(mutex);

		if (best && urgency(best->task) < lent)
			lent = urgency(best->task);
	}
	sched_donate(task, lent);
}

/* The waiter is on the new owner's stack: it must be out of the queue before that task runs. */
static void hand_over(struct mutex *mutex, struct waiter *waiter)
{
	struct task *task = waiter->task;

	wait_leave(waiter);
	task->waiting = NULL;
	take(mutex, task);
	return_loans(task);
	sched_wake(task);
}

/* The pre-emption is last, with interrupts as they were: until then the lists are in motion. */
void mutex_unlock(struct mutex *mutex)
{
	bool enabled = interrupts_disable();
	struct mutex **link = &current->held;

	ASSERT(mutex->owner == current);
	while (*link != mutex)
		link = &(*link)->next_held;
	*link = mutex->next_held;
	mutex->owner = NULL;
	struct waiter *next = most_urgent(mutex);

	return_loans(current);
	if (next)
		hand_over(mutex, next);
	interrupts_restore(enabled);
	if (enabled)
		preempt_check();
}

/* Any wake-up that is not the hand-over (there is none today) sleeps again: the owner decides. */
void mutex_lock(struct mutex *mutex)
{
	bool enabled = interrupts_disable();
	struct waiter waiter;

	ASSERT(mutex->owner != current);
	if (!mutex->owner) {
		take(mutex, current);
	} else {
		wait_join(&mutex->waiters, &waiter);
		current->waiting = mutex;
		donate(mutex);
		while (mutex->owner != current)
			sched_sleep(TASK_BLOCKED);
	}
	interrupts_restore(enabled);
}
/* } SOLUTION 4.4 */
