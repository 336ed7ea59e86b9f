/*
 * Fair shares: the task that has had the least runs next.
 *
 * What a task has had is its virtual time: the processor's time divided by its weight, which
 * follows from its niceness. Two tasks that only compute, A of niceness 0 (weight 1024) and B of
 * niceness 5 (weight 335), in ticks:
 *
 *	tick	0   1   2   3   4   5   6   7   8
 *	runs	A   B   A   A   A   B   A   A   A
 *	A has	0   1   1   2   3   4   4   5   6
 *	B has	0   0   3   3   3   3   6   6   6	3.06 for each tick
 *
 * So A gets three quarters of the processor, and neither waits long. All virtual times stay within
 * a turn of each other. They may wrap around, so they are compared by the sign of their difference.
 * The queue is a sorted list: fine for tens of tasks, where Linux has a tree.
 *
 * Read more: Linux's documentation of CFS (Documentation/scheduler/sched-design-CFS). Called with
 * interrupts disabled.
 */
#include "kernel/task/sched_class.h"

#include "kernel/lib/divide.h"
#include "kernel/task/time.h"

#define WEIGHT_0 1024u /* of niceness 0; each step up or down is a factor of 5/4 */

static struct list queue = LIST_EMPTY(queue); /* by virtual time */
static uint64_t minimum; /* follows the least virtual time; it never goes back */

static struct task *task_of(struct list *link)
{
	return list_entry(link, struct task, schedule.in_queue);
}

/* The task's niceness, or a lower one that a waiting task has lent. */
static int fair_priority(const struct task *task)
{
	const struct task_schedule *schedule = &task->schedule;

	return schedule->donated < schedule->nice ? schedule->donated : schedule->nice;
}

/* Each step of niceness is a factor of 5/4, so it changes the shares of two tasks by about ten
 * percent. Made at the first use. */
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
	return weights[fair_priority(task) + 20];
}

/* EXERCISE 4.6 (fair shares): the functions of struct sched_class; the rules are in the opening
   comment.

   - fair_charge: adds the TSC cycles, scaled by WEIGHT_0 / weight(task) and rounded down, to the
     task's virtual time (divide64). Then `minimum` follows: it is the least virtual time of this
     task and of those in the queue, and it never goes back.
   - fair_join: a new task begins at the minimum.
   - fair_enqueue: the queue is kept in the order of virtual times, and equals stay in the order
     in which they came. A task that was woken is at most one turn (sched_quantum ticks) below
     the minimum. A task that yields has at least as much as the first one in the queue.
   - fair_pick: takes the first; NULL without one.
   - fair_tick: is the turn over, because the first in the queue has had less?
   - fair_preempts: only a task that has had less by more than half a tick pre-empts: otherwise
     two tasks that wake each other would do nothing but switch.

   Pitfalls: virtual times wrap around, so compare them by the sign of their difference. A task
   that begins at 0 could hold the processor for as long as all others have run. A task that was
   pre-empted keeps what it had, and so does its place: only sleeping must not be saved up. */
/* SOLUTION 4.6 { */
static bool is_before(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0;
}

/* The task that has had the least of all in the queue. */
static struct task *first(void)
{
	return list_is_empty(&queue) ? NULL : task_of(queue.next);
}

/* The task runs, so it is in no queue: its virtual time may change without moving it. */
static void fair_charge(struct task *task, uint64_t cycles)
{
	const struct task *waiting = first();

	task->schedule.virtual_time += divide64(cycles * WEIGHT_0, weight(task), NULL);
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

/* From the end, because a task that has just run usually belongs there. */
static void fair_enqueue(struct task *task, enum sched_reason reason)
{
	uint64_t *time = &task->schedule.virtual_time;
	uint64_t lowest = minimum - (uint64_t)time_cycles_per_tick() * sched_quantum;
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
		list_remove(&task->schedule.in_queue);
	return task;
}

static bool fair_tick(struct task *task)
{
	return first() && is_before(first()->schedule.virtual_time, task->schedule.virtual_time);
}

static bool fair_preempts(const struct task *woken, const struct task *running)
{
	return is_before(woken->schedule.virtual_time + time_cycles_per_tick() / 2,
			 running->schedule.virtual_time);
}
/* } SOLUTION 4.6 */

const struct sched_class sched_fair = {
	.name = "fair",
	.join = fair_join,
	.enqueue = fair_enqueue,
	.pick = fair_pick,
	.charge = fair_charge,
	.tick = fair_tick,
	.preempts = fair_preempts,
	.priority = fair_priority,
};
