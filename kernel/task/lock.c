/*
 * Mutexes with priority inheritance.
 *
 * Without it, a task of high priority may wait for one of low priority that does not get to run
 * (priority inversion):
 *
 *	low	holds the mutex, and is pre-empted by medium
 *	high	needs the mutex, and sleeps
 *	medium	computes for as long as it likes; in effect high waits for medium
 *
 * So a task that waits for a mutex lends (donates) its priority to the owner, and if the owner
 * waits for another mutex, to that one's owner:
 *
 *	high --waits for--> mutex a --owner--> middle --waits for--> mutex b --owner--> low
 *	middle and low both have high's priority, until each unlocks
 *
 * Ownership is handed over: the task that unlocks chooses the next owner, so no third task can
 * take the mutex in between. Invariants, with interrupts disabled: task->held lists the mutexes
 * that a task owns; task->waiting is the one that it sleeps for; what is lent to a task is the
 * highest priority of all tasks that wait for any mutex that it holds. In the code a
 * priority is a number: less is higher. Task context only: locking may sleep.
 */
#include "kernel/task/lock.h"

#include "kernel/report/panic.h"
#include "kernel/task/sched.h"

static int priority(const struct task *task)
{
	return sched_class->priority(task);
}

/* EXERCISE 4.4 (priorities, part 2: inheritance). The invariants are in the opening comment; all
   of this happens with interrupts disabled.

   - take (your own helper): the task becomes the owner; the mutex is first in its list `held`.
   - donate (your own helper): the current task waits for the mutex. Its owner gets its priority,
     unless it has a higher one; so does the owner of the mutex that this one waits for, and so on,
     for DONATION_DEPTH owners at most.
   - highest_waiter (your own helper): the waiter of highest priority, the first among equals; or
   NULL.
   - return_loans (your own helper): makes what is lent to a task what the invariant says.
   - mutex_lock: panics (ASSERT) if the caller holds the mutex. Takes it if it is free; otherwise
     joins its queue, donates, and sleeps as TASK_BLOCKED until it is the owner.
   - mutex_unlock: panics if the caller does not hold the mutex. The caller keeps only the loans
     that its other mutexes justify. The next waiter, if there is one, becomes the owner before any
     other task runs: it leaves the queue, inherits from the tasks that still wait, and wakes.
     Last, preempt_check, as in wait.c.

   Pitfalls: sched_donate moves a task in its queue, even to the end of its level: call it only
   for a change. A task may hold several mutexes and have loans because of more than one. If the
   woken task had to take the mutex for itself, a third task could take it first. */
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
	int lent = priority(current);

	for (unsigned depth = 0; mutex && depth < DONATION_DEPTH; depth++) {
		struct task *owner = mutex->owner;

		if (priority(owner) > lent)
			sched_donate(owner, lent);
		mutex = owner->waiting;
	}
}

/* Among equals the first in the queue, which has waited longest. */
static struct waiter *highest_waiter(const struct mutex *mutex)
{
	struct waiter *best = mutex->waiters.first;

	for (struct waiter *waiter = best; waiter; waiter = waiter->next)
		if (priority(waiter->task) < priority(best->task))
			best = waiter;
	return best;
}

static void return_loans(struct task *task)
{
	int lent = PRIORITY_NONE;

	for (const struct mutex *mutex = task->held; mutex; mutex = mutex->next_held) {
		const struct waiter *best = highest_waiter(mutex);

		if (best && priority(best->task) < lent)
			lent = priority(best->task);
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

/* The pre-emption comes last, with interrupts as they were: until then the lists are changing. */
void mutex_unlock(struct mutex *mutex)
{
	bool enabled = interrupts_disable();
	struct mutex **link = &current->held;

	ASSERT(mutex->owner == current);
	while (*link != mutex)
		link = &(*link)->next_held;
	*link = mutex->next_held;
	mutex->owner = NULL;
	struct waiter *next = highest_waiter(mutex);

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
