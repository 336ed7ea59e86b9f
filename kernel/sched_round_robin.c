/* Round robin: everybody in turn, and nobody for longer than a quantum. */
#include "kernel/sched.h"

#include <stddef.h>

static struct list queue = LIST_EMPTY(queue);

static void dequeue(struct task *task)
{
	list_remove(&task->schedule.in_queue);
}

static struct task *pick(void)
{
	if (list_is_empty(&queue))
		return NULL;
	struct task *task = list_entry(queue.next, struct task, schedule.in_queue);

	dequeue(task);
	return task;
}

/* EXERCISE 4.2 (pre-emption, part 2 of 2):
   1. join and enqueue: a task begins each turn with a whole quantum, sched_quantum ticks, however
   its last turn ended, and at the end of the queue.
   2. tick: one tick less. At the end of the quantum begin a new one, for there may be nobody else,
   and say that the turn is over. */
/* SOLUTION 4.2 { */
static void join(struct task *task)
{
	task->schedule.quantum = sched_quantum;
}

static void enqueue(struct task *task, enum sched_reason reason)
{
	join(task);
	list_append(&queue, &task->schedule.in_queue);
}

static bool tick(struct task *task)
{
	if (--task->schedule.quantum > 0)
		return false;
	join(task);
	return true;
}
/* } SOLUTION 4.2 */

static void charge(struct task *task, uint64_t stamps)
{
}

static bool preempts(const struct task *woken, const struct task *running)
{
	return false;
}

static int urgency(const struct task *task)
{
	return 0;
}

const struct sched_class sched_round_robin = {
	.name = "rr",
	.join = join,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pick = pick,
	.charge = charge,
	.tick = tick,
	.preempts = preempts,
	.urgency = urgency,
};
