/*
 * A fair share for everybody: who has had the least goes next.
 *
 * What a task has had is its virtual time: the processor's time divided by the task's weight, which
 * its niceness gives. All virtual times stay within a turn of each other. They may wrap around, so
 * they are compared by the sign of their difference.
 */
#include "kernel/task/sched.h"

#include <stddef.h>

#include "kernel/lib/divide.h"
#include "kernel/task/time.h"

#define WEIGHT_0 1024u /* of niceness 0; each step up or down is a factor of 5/4 */

static struct list queue = LIST_EMPTY(queue); /* by virtual time */
static uint64_t minimum; /* what the one with the least has had; it never goes back */

static struct task *task_of(struct list *link)
{
	return list_entry(link, struct task, schedule.in_queue);
}

static void fair_dequeue(struct task *task)
{
	list_remove(&task->schedule.in_queue);
}

/* How nice the task is, or whoever waits for it. */
static int fair_urgency(const struct task *task)
{
	const struct task_schedule *schedule = &task->schedule;

	return schedule->donated < schedule->nice ? schedule->donated : schedule->nice;
}

static uint32_t weight(const struct task *task)
{
	static uint32_t weights[40]; /* of niceness -20 to 19 */

	if (weights[0] == 0) {
		weights[20] = WEIGHT_0;
		for (unsigned i = 20; i > 0; i--)
			weights[i - 1] = weights[i] * 5 / 4;
		for (unsigned i = 20; i < 39; i++)
			weights[i + 1] = weights[i] * 4 / 5;
	}
	return weights[fair_urgency(task) + 20];
}

/* EXERCISE 4.6 (fair shares):
   1. is_before: a has had less than b; by the sign of the difference.
   2. charge: the stamps, scaled by WEIGHT_0 / weight(task), are added to the task's virtual time
   (divide64). Then the minimum follows: it is the least of what this task and the first in the
   queue have had, and never goes back.
   3. join: a new task has had what the one with the least has had, and not less: else it could keep
   the others waiting for as long as they have run.
   4. enqueue: whoever has slept has had nothing meanwhile, but must not save that up: at most one
   turn's virtual time, sched_quantum ticks, below the minimum. Whoever yields pays what the first
   in the queue has had. Then its place is behind all that have had less or the same.
   5. pick: the first one.
   6. tick: the turn is over when the first in the queue has had less.
   7. preempts: when it has had less, and by more than half a tick: else two tasks that wake each
   other would do nothing else. */
/* SOLUTION 4.6 { */
static bool is_before(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0;
}

static struct task *first(void)
{
	return list_is_empty(&queue) ? NULL : task_of(queue.next);
}

static void fair_charge(struct task *task, uint64_t stamps)
{
	const struct task *waiting = first();

	task->schedule.virtual_time += divide64(stamps * WEIGHT_0, weight(task), NULL);
	uint64_t least = task->schedule.virtual_time;

	if (waiting && is_before(waiting->schedule.virtual_time, least))
		least = waiting->schedule.virtual_time;
	if (is_before(minimum, least))
		minimum = least;
}

static void fair_join(struct task *task)
{
	task->schedule.virtual_time = minimum;
}

static void fair_enqueue(struct task *task, enum sched_reason reason)
{
	uint64_t *time = &task->schedule.virtual_time;
	uint64_t lowest = minimum - (uint64_t)time_stamps_per_tick() * sched_quantum;
	struct list *previous = queue.previous;

	if (reason == SCHED_WOKEN && is_before(*time, lowest))
		*time = lowest;
	if (reason == SCHED_YIELDED && first() && is_before(*time, first()->schedule.virtual_time))
		*time = first()->schedule.virtual_time;
	while (previous != &queue && is_before(*time, task_of(previous)->schedule.virtual_time))
		previous = previous->previous;
	list_insert(&task->schedule.in_queue, previous->next);
}

static struct task *fair_pick(void)
{
	struct task *task = first();

	if (task)
		fair_dequeue(task);
	return task;
}

static bool fair_tick(struct task *task)
{
	return first() && is_before(first()->schedule.virtual_time, task->schedule.virtual_time);
}

static bool fair_preempts(const struct task *woken, const struct task *running)
{
	return is_before(woken->schedule.virtual_time + time_stamps_per_tick() / 2,
			 running->schedule.virtual_time);
}
/* } SOLUTION 4.6 */

const struct sched_class sched_fair = {
	.name = "fair",
	.join = fair_join,
	.enqueue = fair_enqueue,
	.dequeue = fair_dequeue,
	.pick = fair_pick,
	.charge = fair_charge,
	.tick = fair_tick,
	.preempts = fair_preempts,
	.urgency = fair_urgency,
};
