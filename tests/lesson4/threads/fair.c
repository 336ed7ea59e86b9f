/* Exercise 4.6: shares, each by its weight. */
#include "tests/lesson4/threads/thread_test.h"

#define SPINNERS 8

void in_turn(void);
void shares(void);

static void turn(void *argument)
{
	for (unsigned i = 0; i < 3; i++) {
		answer((uintptr_t)argument);
		busy(200000);
		yield();
	}
}

void in_turn(void)
{
	uint32_t before = task_count;

	quiet();
	sched_use("fair");
	begin_thread(turn, 1);
	begin_thread(turn, 2);
	begin_thread(turn, 3);
	await_threads(before);
}

static struct task *tasks[SPINNERS];

/* questions: threads, ticks, niceness of each. */
void shares(void)
{
	sched_use("fair");
	preempt_disable();
	for (uint32_t i = 0; i < questions[0]; i++)
		tasks[i] = begin_spinner((int32_t)questions[2 + i]);
	sleep_ticks(questions[1]);
	interrupts_disable();
	for (uint32_t i = 0; i < questions[0]; i++)
		answer_total(tasks[i]);
}
