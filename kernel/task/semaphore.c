/*
 * Counting semaphores: a number that never goes below 0.
 *
 *	down	count 1 -> 0		returns at once
 *	down	count 0			sleeps in `waiters`
 *	up	count 0 -> 1		wakes one task, which checks again and takes it: 1 -> 0
 *
 * Between the wake-up and the check another task may have taken the one: so the woken task checks
 * again, in a loop. No wake-up is lost, because the check and the sleep are one step with
 * interrupts disabled. semaphore_up may be called from any context, semaphore_down by tasks only.
 */
#include "kernel/task/lock.h"
#include "kernel/task/sched.h"

/* EXERCISE 4.3 (sleeping, part 3): the structure and the contracts are in kernel/task/lock.h.

   - semaphore_down: takes one from the count; while the count is 0, sleeps (wait_sleep_blocked).
   - semaphore_up: adds one and wakes one waiter; then preempt_check, as in part 2.

   Pitfalls: another task may take the count between the wake-up and the time when the woken task
   runs. The count must not change between the check and the sleep. */
/* SOLUTION 4.3 { */
void semaphore_down(struct semaphore *semaphore)
{
	bool enabled = interrupts_disable();

	while (semaphore->count == 0)
		wait_sleep_blocked(&semaphore->waiters);
	semaphore->count--;
	interrupts_restore(enabled);
}

/* The woken task may have a higher priority: once interrupts are as they were, it may run. */
void semaphore_up(struct semaphore *semaphore)
{
	bool enabled = interrupts_disable();

	semaphore->count++;
	wait_wake_one(&semaphore->waiters);
	interrupts_restore(enabled);
	if (enabled)
		preempt_check();
}
/* } SOLUTION 4.3 */
