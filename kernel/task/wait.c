/*
 * Waiting for an event while other tasks run.
 *
 * A task that waits for an event does not poll: it joins the event's queue, checks once more, and
 * sleeps. The code that makes the event happen wakes the queue. The order matters: a wake-up
 * between the check and the sleep must not be lost:
 *
 *	the task that waits				the code that wakes
 *	wait_join(queue)
 *	has it happened? no
 *							makes it happen
 *							wait_wake: is_woken = true
 *	wait_any: is_woken, so no sleep
 *
 * wait_event does all of this with interrupts disabled, because the other one may be an interrupt
 * handler. A place in a queue is on the stack of the task that waits: it leaves the queue before
 * its function returns.
 */
#include "kernel/task/wait.h"

#include "kernel/lib/errno.h"
#include "kernel/task/sched.h"
#include "kernel/task/time.h"
#include "kernel/task/timer.h"

/* On the stack of a task that sleeps no longer than until a deadline. */
struct alarm_clock {
	struct timer timer;
	struct task *task;
};

/* The timer is the structure's first member. */
static void wake_sleeper(struct timer *timer)
{
	sched_wake(((struct alarm_clock *)timer)->task);
}

/* Marks a waiter, and wakes its task or calls its function. With interrupts disabled. */
static void wake_waiter(struct waiter *waiter)
{
	waiter->is_woken = true;
	if (waiter->calls)
		waiter->function(waiter);
	else
		sched_wake(waiter->task);
}

/* EXERCISE 4.3 (sleeping, part 2): the contracts are in kernel/task/wait.h.

   - wait_join: `waiter` gets a place at the end of the queue for the current task, not woken
     yet. wait_leave takes it out, and the others keep their order. waiter->queue is NULL while
     it is in no queue; then wait_leave does nothing.
   - sleep (wait_sleep_blocked, below, calls it, too): sleeps in this state of life until the
     task is woken, or until the deadline. Interrupts are disabled.
   - wait_any: the first that holds: a waiter was woken since it joined (0); a signal is pending
     (-ERESTART); the deadline has passed (-ETIMEDOUT). If none holds, it sleeps, and returns 0
     when it is woken.
   - msleep: sleeps as TASK_BLOCKED until the time has passed, even if it is woken early.
   - wait_wake: calls wake_waiter, above, for each waiter; often there is none.
   - wait_wake_one: marks one waiter that is not marked yet, and wakes its task: the one of highest
     priority (a number of sched_class: lower numbers are higher), and among equals the first in
     the queue.

   Pitfalls: between the check and the sleep no wake-up may be lost, so both happen with
   interrupts disabled. A timer on your stack must not stay in the list after the function
   returns. A waiter that is marked may not have run yet: a second wake-up is for another task.
   A woken task may have a higher priority than the caller: call preempt_check, once interrupts are
   as they were, and only if they were enabled. WAIT_FOREVER never passes, although the sign of
   its difference to any time says that it has. */
/* SOLUTION 4.3 { */
/* At the end, so that among equals the task that has waited longest comes first. */
void wait_join(struct wait_queue *queue, struct waiter *waiter)
{
	bool enabled = interrupts_disable();
	struct waiter **end = &queue->first;

	while (*end)
		end = &(*end)->next;
	*waiter = (struct waiter){ .task = current, .queue = queue };
	*end = waiter;
	interrupts_restore(enabled);
}

void wait_leave(struct waiter *waiter)
{
	bool enabled = interrupts_disable();

	if (waiter->queue) {
		struct waiter **link = &waiter->queue->first;

		while (*link != waiter)
			link = &(*link)->next;
		*link = waiter->next;
		waiter->queue = NULL;
	}
	interrupts_restore(enabled);
}

/* The timer is on this stack, so it is cancelled before the function returns. */
static void sleep(enum task_life life, uint64_t deadline_ns)
{
	if (deadline_ns == WAIT_FOREVER) {
		sched_sleep(life);
		return;
	}
	struct alarm_clock clock = { .task = current };

	timer_start(&clock.timer, deadline_ns, wake_sleeper);
	sched_sleep(life);
	timer_cancel(&clock.timer);
}

static bool is_any_woken(const struct waiter *waiters, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (waiters[i].is_woken)
			return true;
	return false;
}

int wait_any(const struct waiter *waiters, unsigned count, uint64_t deadline_ns)
{
	bool enabled = interrupts_disable();
	int result = 0;

	if (is_any_woken(waiters, count))
		result = 0;
	else if (current->has_signal)
		result = -ERESTART;
	else if (deadline_ns != WAIT_FOREVER && time_ns() >= deadline_ns)
		result = -ETIMEDOUT;
	else
		sleep(TASK_SLEEPING, deadline_ns);
	interrupts_restore(enabled);
	return result;
}

/* If the task is woken early, it sleeps again. */
void msleep(uint32_t milliseconds)
{
	uint64_t deadline = time_ns() + milliseconds * 1000000ull;
	bool enabled = interrupts_disable();

	while (time_ns() < deadline)
		sleep(TASK_BLOCKED, deadline);
	interrupts_restore(enabled);
}

/* From any context. Marking and waking are one step, so that poll sees which queue was woken. */
void wait_wake(struct wait_queue *queue)
{
	if (!queue->first)
		return;
	bool enabled = interrupts_disable();

	for (struct waiter *waiter = queue->first; waiter; waiter = waiter->next)
		wake_waiter(waiter);
	interrupts_restore(enabled);
	if (enabled)
		preempt_check();
}

void wait_wake_one(struct wait_queue *queue)
{
	bool enabled = interrupts_disable();
	struct waiter *best = NULL;

	for (struct waiter *waiter = queue->first; waiter; waiter = waiter->next)
		if (!waiter->is_woken && (!best || sched_class->priority(waiter->task) <
						       sched_class->priority(best->task)))
			best = waiter;
	if (best) {
		best->is_woken = true;
		sched_wake(best->task);
	}
	interrupts_restore(enabled);
	if (enabled)
		preempt_check();
}
/* } SOLUTION 4.3 */

/* ---- one queue ---- */

/* Joined before the check: a wake-up in between is remembered in the waiter. */
int wait_sleep_until(struct wait_queue *queue, uint64_t deadline_ns)
{
	struct waiter waiter;

	wait_join(queue, &waiter);
	int result = wait_any(&waiter, 1, deadline_ns);

	wait_leave(&waiter);
	return result;
}

/* Only for an event that is certain to come: no signal and no deadline ends this sleep. */
void wait_sleep_blocked(struct wait_queue *queue)
{
	struct waiter waiter;

	wait_join(queue, &waiter);
	sleep(TASK_BLOCKED, WAIT_FOREVER);
	wait_leave(&waiter);
}
