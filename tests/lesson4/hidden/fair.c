/* Exercise 4.6: the class by itself, and who has not run for long. */
#include "tests/lesson4/hidden/class_steps.h"

#define THREADS 3
#define LARGE	(1ull << 53)

void class_steps(void);
void newcomer(void);
void sleeper(void);

/* ---- the class by itself ---- */

/* Lets the least virtual time pass on to this one: a task that is alone pays for what is missing,
 * in pieces of which none is too large for a product of 64 bits. */
static void pass_on_to(uint64_t time)
{
	struct task *task = &fakes[0];
	uint64_t left;

	task->schedule.donated = PRIORITY_NONE;
	sched_fair.join(task);
	for (unsigned i = 0; i < 3000; i++) {
		left = time - task->schedule.virtual_time;
		sched_fair.charge(task, left < LARGE ? left : LARGE);
	}
}

/* questions: steps, quantum, the virtual time to begin with. answers: stamps per tick; after each
 * step its result, and the virtual time of the task. */
void class_steps(void)
{
	begin_steps();
	pass_on_to(questions[2] | (uint64_t)questions[3] << 32);
	for (uint32_t i = 0; i < questions[0]; i++) {
		const struct task *task = &fakes[steps[3 * i + 1]];

		answer(run_step(&sched_fair, &steps[3 * i]));
		answer((uint32_t)task->schedule.virtual_time);
		answer((uint32_t)(task->schedule.virtual_time >> 32));
	}
}

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
