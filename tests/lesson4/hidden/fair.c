/* Exercise 4.6: the class by itself, and who has not run for long. */
#include "tests/lesson4/threads/thread_test.h"

#define THREADS	 3
#define FAKES	 8
#define NO_TASK	 999
#define CONFUSED 777 /* a step that fits only if all before were right */

void class_steps(void);
void newcomer(void);
void sleeper(void);

/* ---- the class by itself ---- */

enum step { JOIN, ENQUEUE, PICK, CHARGE, TICK, DEQUEUE, NICE, PREEMPTS, DONATE };

static struct task fakes[FAKES];
extern uint32_t steps[3 * 700];
uint32_t steps[3 * 700] = { 1 };

static uint32_t run_step(uint32_t step, struct task *task, uint32_t value)
{
	struct task *picked;

	switch (step) {
	case JOIN:
		task->schedule.nice = (int32_t)value;
		task->schedule.donated = URGENCY_NONE;
		sched_fair.join(task);
		return 0;
	case ENQUEUE:
		if (task->schedule.is_queued)
			return CONFUSED;
		task->schedule.is_queued = true;
		sched_fair.enqueue(task, value);
		return 0;
	case PICK:
		picked = sched_fair.pick();
		if (picked)
			picked->schedule.is_queued = false;
		return picked ? (uint32_t)(picked - fakes) : NO_TASK;
	case CHARGE:
		sched_fair.charge(task, value);
		return 0;
	case TICK:
		return sched_fair.tick(task);
	case DEQUEUE:
		if (!task->schedule.is_queued)
			return CONFUSED;
		task->schedule.is_queued = false;
		sched_fair.dequeue(task);
		return 0;
	case NICE:
		task->schedule.nice = (int32_t)value;
		return 0;
	case PREEMPTS:
		return sched_fair.preempts(task, &fakes[value]);
	default:
		task->schedule.donated = (int32_t)value;
		return 0;
	}
}

/* questions: steps, quantum. answers: stamps per tick; after each step its result, and the virtual
 * time of the task, its lower half. */
void class_steps(void)
{
	quiet();
	interrupts_disable();
	sched_quantum = questions[1];
	time_initialize(1000000);
	answer(time_stamps_per_tick());
	for (uint32_t i = 0; i < questions[0]; i++) {
		struct task *task = &fakes[steps[3 * i + 1]];

		answer(run_step(steps[3 * i], task, steps[3 * i + 2]));
		answer((uint32_t)task->schedule.virtual_time);
		answer((uint32_t)(task->schedule.virtual_time >> 32));
	}
}

/* ---- with the clock ---- */

/* ---- with the clock ---- */

static struct task *tasks[THREADS];

static void answer_totals(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		answer_total(tasks[i]);
}

/* Two threads that have run for long, then a third one. */
void newcomer(void)
{
	sched_use("fair");
	tasks[0] = begin_spinner(0);
	tasks[1] = begin_spinner(0);
	sleep_ticks(60);
	answer_totals(2);
	tasks[2] = begin_spinner(0);
	sleep_ticks(30);
	interrupts_disable();
	answer_totals(3);
}

static void sleep_then_spin(void *argument)
{
	sleep_ticks((uintptr_t)argument);
	for (;;)
		busy(1000000);
}

/* A thread that has slept for long, and two that have not. */
void sleeper(void)
{
	sched_use("fair");
	tasks[0] = begin_spinner(0);
	tasks[1] = begin_spinner(0);
	tasks[2] = begin_thread(sleep_then_spin, 60);
	sleep_ticks(61);
	answer_totals(3);
	sleep_ticks(30);
	interrupts_disable();
	answer_totals(3);
}
