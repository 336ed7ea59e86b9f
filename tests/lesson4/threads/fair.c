/* Exercise 4.6: shares, each by its weight. */
#include "tests/lesson4/threads/thread_test.h"

#define SPINNERS 8

void in_turn(void);
void long_turns(void);
void shares(void);
void newcomer(void);

static void turn(void *argument)
{
	for (unsigned i = 0; i < 3; i++) {
		answer((uintptr_t)argument);
		busy((uintptr_t)argument < 4 ? 200000 : 800000);
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

/* A turn of thread 4 is as long as four of the others. */
void long_turns(void)
{
	uint32_t before = task_count;

	quiet();
	sched_use("fair");
	begin_thread(turn, 4);
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

/* questions: ticks for which one thread computes alone, and ticks beside a new one. Answers what
 * each of the two had of the latter. */
void newcomer(void)
{
	sched_use("fair");
	preempt_disable();
	struct task *old = begin_spinner(0);

	sleep_ticks(questions[0]);
	uint64_t had = old->schedule.total;
	struct task *young = begin_spinner(0);

	sleep_ticks(questions[1]);
	interrupts_disable();
	answer((uint32_t)(old->schedule.total - had));
	answer((uint32_t)young->schedule.total);
}
