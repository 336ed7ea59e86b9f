/* Counting semaphores. */
#include "kernel/cpu/interrupts.h"
#include "kernel/task/lock.h"
#include "kernel/task/sched.h"

/* EXERCISE 4.3 (sleeping, part 3): the count is looked at, and changed, with interrupts off.
   1. semaphore_down: sleep with wait_sleep_blocked as long as the count is 0, then take one. Look
   again after each sleep: somebody else may have been faster.
   2. semaphore_up: one more, and wake one. Behind it: preempt_check, if interrupts were on. */
/* SOLUTION 4.3 { */
void semaphore_down(struct semaphore *semaphore)
{
	bool enabled = interrupts_disable();

	while (semaphore->count == 0)
		wait_sleep_blocked(&semaphore->waiters);
	semaphore->count--;
	interrupts_restore(enabled);
}

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
