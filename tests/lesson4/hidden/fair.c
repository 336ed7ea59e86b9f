/* Exercise 4.6: the class by itself, and who has not run for long. */
#include "tests/lesson4/hidden/class_steps.h"

#define THREADS 3

void class_steps(void);
void newcomer(void);
void sleeper(void);

/* ---- the class by itself ---- */

/* questions: steps, quantum. answers: stamps per tick; after each step its result, and the virtual
 * time of the task, its lower half. */
void class_steps(void)
{
	begin_steps();
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
