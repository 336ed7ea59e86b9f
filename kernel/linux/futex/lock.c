/*
 * Locks in programs' memory that the kernel hands over: FUTEX_LOCK_PI and its like, for
 * PTHREAD_PRIO_INHERIT.
 *
 *	the word	0: free		7: task 7 has it	7 | WAITERS: and others want it
 *
 * The program takes a free one, and gives back one that nobody waits for, without a call. A task
 * that waits lends its priority to the owner, and to the one that this waits for, as
 * kernel/task/lock.c does it; the owner gives all loans back with its next call that unlocks. That
 * call hands the lock to the waiter of highest priority, of equals to the first.
 *
 * A word is changed, and waiters are looked at, in steps that do not sleep (futex_change).
 */

#include "kernel/linux/call.h"
#include "kernel/linux/futex/futex.h"
#include "kernel/linux/sleeper.h"
#include "kernel/task/lock.h"
#include "kernel/task/sched.h"

#define INT_BYTES 2 /* of the instruction that calls the kernel */

/* On the stack of the task that waits. */
struct lock_waiter {
	struct sleeper sleeper; /* 0: it has the lock; -EAGAIN: it is to try again */
	struct futex_key key;
	struct task *task;
	int32_t owner; /* pid of who has the lock */
};

static struct list waiters = LIST_EMPTY(waiters);

static int futex_priority(const struct task *task)
{
	return sched_class->priority(task);
}

/* The current task waits: its priority is the owner's, and so on. */
static void futex_lend(struct task *owner)
{
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();
	int lent = futex_priority(current);

	for (unsigned depth = 0; owner && depth < DONATION_DEPTH; depth++) {
		const struct task *waiting = owner;

		if (futex_priority(owner) > lent)
			sched_donate(owner, lent);
		owner = NULL;
		list_for_each(const struct lock_waiter, waiter, &waiters, sleeper.link)
			if (waiter->task == waiting)
				owner = task_find(waiter->owner);
	}
}

/* Makes what is lent to a task what those that wait for it have. */
static void return_futex_loans(struct task *task)
{
	int lent = PRIORITY_NONE;

	list_for_each(const struct lock_waiter, waiter, &waiters, sleeper.link)
		if (waiter->owner == task->pid && futex_priority(waiter->task) < lent)
			lent = futex_priority(waiter->task);
	sched_donate(task, lent);
}

/* Of the waiters of a word: the one that gets the lock next, or NULL. */
static struct lock_waiter *highest_futex_waiter(struct futex_key key)
{
	struct lock_waiter *best = NULL;

	list_for_each(struct lock_waiter, waiter, &waiters, sleeper.link)
		if (futex_is_same(waiter->key, key) &&
		    (!best || futex_priority(waiter->task) < futex_priority(best->task)))
			best = waiter;
	return best;
}

/* ---- changes of the word ---- */

/* Takes a free word. */
static uint32_t tried(uint32_t word, uint32_t task)
{
	return word & FUTEX_OWNER ? word : word | task;
}

/* Takes it, or says that somebody waits, so that the owner unlocks by a call. */
static uint32_t locked(uint32_t word, uint32_t task)
{
	return word & FUTEX_OWNER ? word | FUTEX_WAITERS : word | task;
}

/* Makes it the next owner's, or 0; not if it is another task's meanwhile. */
static uint32_t unlocked(uint32_t word, uint32_t next)
{
	return (word & FUTEX_OWNER) == (uint32_t)current->pid ? next : word;
}

/* ---- the operations ---- */

/* Signals that have a handler do not end the call: it is made again. Returns 0, -EAGAIN if the lock
 * must be tried again, or -ETIMEDOUT; after a signal what makes the call again. */
static int lock_wait(struct trap_frame *frame, struct task *owner, uint64_t deadline)
{
	struct lock_waiter waiter = { .key = futex_key(frame->ebx, frame->ecx),
				      .task = current,
				      .owner = owner->pid };

	futex_hold(&waiter.key);
	futex_lend(owner);
	int result = sleeper_wait(&waiter.sleeper, &waiters, deadline);

	futex_release(&waiter.key);
	if (result != -ERESTART)
		return result;
	frame->eip -= INT_BYTES;
	return frame->error_code; /* the call's number */
}

/* FUTEX_LOCK_PI, or without `waits` FUTEX_TRYLOCK_PI. -EDEADLK for the owner itself, -ESRCH if the
 * owner does not exist. */
static int word_lock(struct trap_frame *frame, bool waits, uint64_t deadline)
{
	for (;;) {
		uint32_t old;
		int result = futex_change(frame->ebx, waits ? locked : tried, current->pid, &old);

		if (result || !(old & FUTEX_OWNER))
			return result;
		if ((old & FUTEX_OWNER) == (uint32_t)current->pid)
			return -EDEADLK;
		struct task *owner = task_find(old & FUTEX_OWNER);

		result = owner && waits ? lock_wait(frame, owner, deadline)
			 : owner	? -EAGAIN
					: -ESRCH;
		if (result != -EAGAIN || !waits)
			return result;
	}
}

/* The others wait for the new owner from now on, and lend it their priority. */
static void word_hand_over(struct lock_waiter *to)
{
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();

	sleeper_end(&to->sleeper, 0);
	list_for_each(struct lock_waiter, waiter, &waiters, sleeper.link)
		if (futex_is_same(waiter->key, to->key))
			waiter->owner = to->task->pid;
	return_futex_loans(to->task);
}

/* The first change brings the page: from then on nothing sleeps. */
static int word_unlock(const struct trap_frame *frame)
{
	uint32_t old;
	int error = futex_change(frame->ebx, NULL, 0, &old);
	struct lock_waiter *next = highest_futex_waiter(futex_key(frame->ebx, frame->ecx));

	if (error)
		return error;
	if ((old & FUTEX_OWNER) != (uint32_t)current->pid)
		return -EPERM;
	error = futex_change(frame->ebx, unlocked,
			     next ? (uint32_t)next->task->pid | FUTEX_WAITERS : 0, &old);
	if (next)
		word_hand_over(next);
	return_futex_loans(current);
	return error;
}

int futex_lock(struct trap_frame *frame, uint32_t operation, uint64_t deadline)
{
	if (operation == FUTEX_UNLOCK)
		return word_unlock(frame);
	if (operation != FUTEX_LOCK && operation != FUTEX_LOCK2 && operation != FUTEX_TRY_LOCK)
		return -ENOSYS;
	return word_lock(frame, operation != FUTEX_TRY_LOCK, deadline);
}

void futex_owner_died(uint32_t address)
{
	struct futex_key key = futex_key(address, 0), private = futex_key(address, FUTEX_PRIVATE);

	list_for_each_safe(struct lock_waiter, waiter, &waiters, sleeper.link)
		if (futex_is_same(waiter->key, key) || futex_is_same(waiter->key, private))
			sleeper_end(&waiter->sleeper, -EAGAIN);
}
