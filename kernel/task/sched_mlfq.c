/*
 * Multi-level feedback queues: a task that uses up its allotment drops one level; one that sleeps
 * often stays near the top.
 *
 *	level	0   1   2   3   4   5   6   7		0 is served first
 *	begins	nice -20 ...    0  ... 19		where a task of this niceness joins
 *	ticks	2   2   2   2   2   4   4   8		allotment, at a quantum of 2
 *
 * A level is served only while all above it are empty. Processor time at a level is added up over
 * any number of turns, so sleeping just before the tick does not help. A task of niceness 0 that
 * only computes is at level 4 for 20 ms, at 5 and 6 for 40 ms each, and then at 7. A shell needs a
 * millisecond per key, and stays at 4: it runs as soon as a key arrives. Once a second all tasks
 * go back to the level that they began at (boost): no task starves, and one that has become
 * interactive is soon noticed.
 *
 * Read more: OSTEP, chapter 8. All functions are called with interrupts disabled
 * (kernel/task/sched_class.h).
 */
#include "kernel/task/sched_class.h"

#include "kernel/task/time.h"

#define LEVELS	 8
#define LEVEL_0	 4 /* where niceness 0 begins */
#define BOOST_NS 1000000000ull

static struct list queues[LEVELS] = {
	LIST_EMPTY(queues[0]), LIST_EMPTY(queues[1]), LIST_EMPTY(queues[2]), LIST_EMPTY(queues[3]),
	LIST_EMPTY(queues[4]), LIST_EMPTY(queues[5]), LIST_EMPTY(queues[6]), LIST_EMPTY(queues[7]),
};
static uint64_t next_boost; /* time_ns() */

/* The level, or a better one that a waiting task has lent: kernel/task/lock.c. */
static int mlfq_priority(const struct task *task)
{
	const struct task_schedule *schedule = &task->schedule;

	return schedule->donated < schedule->level ? schedule->donated : schedule->level;
}

/* TSC cycles of processor time at one level: sched_quantum ticks at levels 0 to 4, twice as many at
 * 5 and 6, four times at 7. Half a tick less, because time is checked at ticks: a task that has run
 * for nearly two ticks has had its two. */
static int64_t allotment(unsigned level)
{
	uint32_t tick = time_cycles_per_tick();
	unsigned doublings = level > LEVEL_0 ? (level - LEVEL_0 + 1) / 2 : 0;

	return ((int64_t)tick * sched_quantum << doublings) - tick / 2;
}

/* EXERCISE 4.4 (priorities, part 1: feedback queues): the functions of struct sched_class; the
   rules are in the opening comment.

   - mlfq_join: the task begins at its niceness's level, five steps of niceness to a level: -20
     to -16 at 0, 0 to 4 at 4, 15 to 19 at 7. It has a whole allotment (`left`, in TSC cycles)
     and a turn: quantum 1. Here `quantum` is a flag: 0 means that the turn is over.
   - mlfq_enqueue: the queue is that of mlfq_priority(). A task that was pre-empted before its
     turn was over continues first in that queue; every other task is last. A new turn begins.
   - mlfq_pick: takes the first task of the lowest-numbered level that is not empty; NULL without
     one.
   - mlfq_charge: subtracts what was used. At 0 or below the task drops one level, if there is
     one below, gets a new allotment, and its turn is over.
   - mlfq_tick: boosts all tasks when next_boost has come (every BOOST_NS). Is the turn over?
   - boost (your own helper): every task joins again; tasks in queues keep the order in which they
     would have been picked; the turn of the one that runs is over.
   - mlfq_preempts: only a task of higher priority pre-empts.

   Pitfalls: a task must not gain anything by sleeping just before each tick, so `left` survives
   a sleep. A task's priority includes loans; its level does not. A task in a queue must not
   change its level: take it out first. On the lowest level, too, a turn ends. */
/* SOLUTION 4.4 { */
static void mlfq_join(struct task *task)
{
	task->schedule.level = (task->schedule.nice + 20) / 5;
	task->schedule.left = allotment(task->schedule.level);
	task->schedule.quantum = 1;
}

static void mlfq_enqueue(struct task *task, enum sched_reason reason)
{
	struct list *queue = &queues[mlfq_priority(task)];
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

		list_remove(&task->schedule.in_queue);
		return task;
	}
	return NULL;
}

/* More than the allotment may have been used: the rest is not counted against the next level. */
static void mlfq_charge(struct task *task, uint64_t cycles)
{
	struct task_schedule *schedule = &task->schedule;

	schedule->left -= cycles;
	if (schedule->left > 0)
		return;
	schedule->quantum = 0;
	if (schedule->level < LEVELS - 1)
		schedule->level++;
	schedule->left = allotment(schedule->level);
}

/* The queues are emptied first: a task's level must not change while it is in the queue of the old
 * one. */
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
		list_remove(&task->schedule.in_queue);
		mlfq_enqueue(task, SCHED_NEW);
	}
	running->schedule.quantum = 0;
}

/* next_boost begins at 0: the first tick boosts, which changes nothing. */
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
	return mlfq_priority(woken) < mlfq_priority(running);
}
/* } SOLUTION 4.4 */

const struct sched_class sched_mlfq = {
	.name = "mlfq",
	.join = mlfq_join,
	.enqueue = mlfq_enqueue,
	.pick = mlfq_pick,
	.charge = mlfq_charge,
	.tick = mlfq_tick,
	.preempts = mlfq_preempts,
	.priority = mlfq_priority,
};
