/*
 * Round robin: one queue; every task in turn, for one quantum at most.
 *
 *	tick	 0	 2	 4	 6	 8		quantum 2, three tasks
 *	runs	 A	 B	 C	 A	 B
 *	queue	 B C	 C A	 A B	 B C	 C A
 *
 * A task that sleeps leaves the queue and comes back at its end, with a whole quantum. There are no
 * priorities, so a task that wakes waits for its turn: with n runnable tasks, at most n quanta.
 */
#include "kernel/task/sched_class.h"

uint32_t sched_quantum = 2;

/* In the order of their turns. The task that runs is not in it. */
static struct list queue = LIST_EMPTY(queue);

static struct task *round_robin_pick(void)
{
	if (list_is_empty(&queue))
		return NULL;
	struct task *task = list_entry(queue.next, struct task, schedule.in_queue);

	list_remove(&task->schedule.in_queue);
	return task;
}

/* EXERCISE 4.2 (pre-emption, part 2 of 2): the functions of struct sched_class that make turns.

   - join, enqueue: each turn begins with a whole quantum of sched_quantum ticks, whatever was
     left of the turn before. enqueue puts the task at the end of the queue.
   - tick: a tick has passed in this turn. Returns true at the end of the quantum.

   Pitfalls: a task that is alone is never queued again: its next turn begins in tick. The
   counter is unsigned. */
/* SOLUTION 4.2 { */
static void round_robin_join(struct task *task)
{
	task->schedule.quantum = sched_quantum;
}

static void round_robin_enqueue(struct task *task, enum sched_reason reason)
{
	round_robin_join(task);
	list_append(&queue, &task->schedule.in_queue);
}

static bool round_robin_tick(struct task *task)
{
	if (--task->schedule.quantum > 0)
		return false;
	round_robin_join(task);
	return true;
}
/* } SOLUTION 4.2 */

/* How long a task has had the processor does not matter here. */
static void round_robin_charge(struct task *task, uint64_t cycles)
{
}

/* No task pre-empts another before its turn is over. */
static bool round_robin_preempts(const struct task *woken, const struct task *running)
{
	return false;
}

static int round_robin_priority(const struct task *task)
{
	return 0;
}

const struct sched_class sched_round_robin = {
	.name = "rr",
	.join = round_robin_join,
	.enqueue = round_robin_enqueue,
	.pick = round_robin_pick,
	.charge = round_robin_charge,
	.tick = round_robin_tick,
	.preempts = round_robin_preempts,
	.priority = round_robin_priority,
};
