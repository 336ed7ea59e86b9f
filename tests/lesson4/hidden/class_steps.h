/* A scheduling class by itself, with tasks that are nothing but their schedule. */
#pragma once

#include "tests/lesson4/threads/thread_test.h"

#define FAKES	  8
#define STEPS_MAX 700u
#define NO_TASK	  999
#define CONFUSED  777 /* a step that fits only if all before were right */

enum step { JOIN, ENQUEUE, PICK, CHARGE, TICK, DEQUEUE, NICE, PREEMPTS, DONATE, LEVEL };

static struct task fakes[FAKES];

/* From the test: what, to which task, and a value. */
extern uint32_t steps[3 * STEPS_MAX];
uint32_t steps[3 * STEPS_MAX] = { 1 };

static inline void queue_up(const struct sched_class *class, struct task *task, uint32_t reason)
{
	task->schedule.is_queued = true;
	class->enqueue(task, reason);
}

static inline uint32_t picked_by(const struct sched_class *class)
{
	struct task *task = class->pick();

	if (!task)
		return NO_TASK;
	task->schedule.is_queued = false;
	return task - fakes;
}

/* Does one of the test's steps. Returns what the test wants to know of it. */
static inline uint32_t run_step(const struct sched_class *class, const uint32_t step[3])
{
	struct task *task = &fakes[step[1]];
	uint32_t value = step[2];

	if ((step[0] == ENQUEUE || step[0] == DEQUEUE) &&
	    task->schedule.is_queued == (step[0] == ENQUEUE))
		return CONFUSED;
	switch (step[0]) {
	case JOIN:
		task->schedule.nice = (int32_t)value;
		task->schedule.donated = PRIORITY_NONE;
		return class->join(task), 0;
	case ENQUEUE:
		return queue_up(class, task, value), 0;
	case PICK:
		return picked_by(class);
	case CHARGE:
		return class->charge(task, value), 0;
	case TICK:
		return class->tick(task);
	case DEQUEUE:
		task->schedule.is_queued = false;
		return list_remove(&task->schedule.in_queue), 0;
	case NICE:
		return task->schedule.nice = (int32_t)value, 0;
	case PREEMPTS:
		return class->preempts(task, &fakes[value]);
	case DONATE:
		return task->schedule.donated = (int32_t)value, 0;
	default:
		return task->schedule.level;
	}
}

/* Without interrupts, and with a clock that everybody knows. questions[1] is the quantum. Answers
 * the time stamps of a tick. */
static inline void begin_steps(void)
{
	quiet();
	interrupts_disable();
	sched_quantum = questions[1];
	time_initialize(1000000);
	answer(time_cycles_per_tick());
}
