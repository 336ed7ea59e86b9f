/*
 * Multi-level feedback queues: who uses the processor up sinks, who sleeps a lot stays above.
 *
 * A level is served only while all above it are empty. A task begins at the top level that its
 * niceness allows, and goes one level down when it has used up that level's allotment, in however
 * many pieces: sleeping just before the tick does not help. Once a second all are lifted to their
 * top levels again, so that nobody starves, and who has become interactive shows it.
 */
#include "kernel/task/sched.h"

#include <stddef.h>

#include "kernel/task/time.h"

#define LEVELS	 8
#define LEVEL_0	 4 /* where niceness 0 begins */
#define BOOST_NS 1000000000ull

static struct list queues[LEVELS] = {
	LIST_EMPTY(queues[0]), LIST_EMPTY(queues[1]), LIST_EMPTY(queues[2]), LIST_EMPTY(queues[3]),
	LIST_EMPTY(queues[4]), LIST_EMPTY(queues[5]), LIST_EMPTY(queues[6]), LIST_EMPTY(queues[7]),
};
static uint64_t next_boost; /* time_ns() */

static int mlfq_urgency(const struct task *task)
{
	const struct task_schedule *schedule = &task->schedule;

	return schedule->donated < schedule->level ? schedule->donated : schedule->level;
}

static void mlfq_dequeue(struct task *task)
{
	list_remove(&task->schedule.in_queue);
}

/* Stamps of processor time at one level: sched_quantum ticks where niceness 0 begins and above;
 * below that twice as much, and twice that at the lowest. Half a tick less, since time is looked at
 * by ticks. */
static int64_t allotment(unsigned level)
{
	uint32_t tick = time_stamps_per_tick();
	unsigned doublings = level > LEVEL_0 ? (level - LEVEL_0 + 1) / 2 : 0;

	return ((int64_t)tick * sched_quantum << doublings) - tick / 2;
}

/* EXERCISE 4.4 (priorities, part 1: feedback queues):
   1. join: niceness -20 begins at level 0, 0 at 4, 19 at 7, with the whole allotment left.
   2. enqueue: at the end of the queue of its mlfq_urgency(). But one that was pre-empted has not
   had its turn, and goes to the front; unless it has just sunk, that is, its quantum is 0. The
   quantum is 1 from then on: a new turn.
   3. pick: from the best level that is not empty.
   4. charge: what is left of the allotment is remembered over sleeps. When nothing is, the task
   sinks one level, gets that one's allotment, and its quantum is 0. From the lowest level nobody
   sinks further.
   5. boost: everybody joins anew. Those who wait get new places, in the order in which they would
   have been picked. The one that runs has had its turn.
   6. tick: boost when next_boost has come. The turn is over when the quantum is 0; enqueue begins a
   new one.
   7. preempts: only who is more urgent does. */
/* SOLUTION 4.4 { */
static void mlfq_join(struct task *task)
{
	task->schedule.level = (task->schedule.nice + 20) / 5;
	task->schedule.left = allotment(task->schedule.level);
	task->schedule.quantum = 1;
}

static void mlfq_enqueue(struct task *task, enum sched_reason reason)
{
	struct list *queue = &queues[mlfq_urgency(task)];
	bool has_turn = reason == SCHED_PREEMPTED && task->schedule.quantum > 0;

	task->schedule.quantum = 1;
	list_insert(&task->schedule.in_queue, has_turn ? queue->next : queue);
}

static struct task *mlfq_pick(void)
{
	for (unsigned level = 0; level < LEVELS; level++) {
		if (list_is_empty(&queues[level]))
			continue;
		struct task *task = list_entry(queues[level].next, struct task, schedule.in_queue);

		mlfq_dequeue(task);
		return task;
	}
	return NULL;
}

static void mlfq_charge(struct task *task, uint64_t stamps)
{
	struct task_schedule *schedule = &task->schedule;

	schedule->left -= stamps;
	if (schedule->left > 0)
		return;
	schedule->quantum = 0;
	if (schedule->level < LEVELS - 1)
		schedule->level++;
	schedule->left = allotment(schedule->level);
}

static void boost(struct task *running)
{
	struct list waiting = LIST_EMPTY(waiting);
	struct task *task;

	while ((task = mlfq_pick()))
		list_append(&waiting, &task->schedule.in_queue);
	for (task = task_next(NULL); task; task = task_next(task))
		mlfq_join(task);
	while (!list_is_empty(&waiting)) {
		task = list_entry(waiting.next, struct task, schedule.in_queue);
		mlfq_dequeue(task);
		mlfq_enqueue(task, SCHED_NEW);
	}
	running->schedule.quantum = 0;
}

static bool mlfq_tick(struct task *task)
{
	uint64_t now = time_ns();

	if ((int64_t)(now - next_boost) >= 0) {
		next_boost = now + BOOST_NS;
		boost(task);
	}
	return task->schedule.quantum == 0;
}

static bool mlfq_preempts(const struct task *woken, const struct task *running)
{
	return mlfq_urgency(woken) < mlfq_urgency(running);
}
/* } SOLUTION 4.4 */

const struct sched_class sched_mlfq = {
	.name = "mlfq",
	.join = mlfq_join,
	.enqueue = mlfq_enqueue,
	.dequeue = mlfq_dequeue,
	.pick = mlfq_pick,
	.charge = mlfq_charge,
	.tick = mlfq_tick,
	.preempts = mlfq_preempts,
	.urgency = mlfq_urgency,
};
