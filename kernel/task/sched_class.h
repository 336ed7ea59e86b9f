/* A scheduling policy: the functions that kernel/task/sched.c calls, and what policies share.
 */
#pragma once

#include "kernel/task/task.h"

/* Why a task enters the queue of its class, or loses the processor. */
enum sched_reason {
	SCHED_NEW,	 /* it is new, or comes from another class */
	SCHED_WOKEN,	 /* the event that it waited for has happened */
	SCHED_YIELDED,	 /* it lets others go first */
	SCHED_PREEMPTED, /* the class wants another one */
	SCHED_SLEEPS,
	SCHED_STOPS, /* by a signal */
	SCHED_ENDS,
};

/* All functions are called with interrupts disabled. The task that runs is in no queue. A queue is
 * made of lists, through schedule.in_queue: kernel/task/sched.c takes tasks out by itself. */
struct sched_class {
	const char *name;
	/* Initializes the state of a task that is new to this class. It is not queued. */
	void (*join)(struct task *task);
	void (*enqueue)(struct task *task, enum sched_reason reason);
	/* Takes the next task out of the queue; NULL: the queue is empty. */
	struct task *(*pick)(void);
	/* Charges the task for this many TSC cycles of processor time. */
	void (*charge)(struct task *task, uint64_t cycles);
	/* A tick while the task runs: is its turn over? */
	bool (*tick)(struct task *task);
	/* Does the task, which was just woken, pre-empt the one that runs? */
	bool (*preempts)(const struct task *woken, const struct task *running);
	/* The task's priority, loans included, as a number: less is higher. */
	int (*priority)(const struct task *task);
};

extern const struct sched_class sched_round_robin, sched_mlfq, sched_fair;

/* Ticks: 1 to 1000. A turn of round robin; the smallest allotment of mlfq. Under fair shares a turn
 * has no fixed length: this is how far below the minimum a task may be when it wakes. */
extern uint32_t sched_quantum;
