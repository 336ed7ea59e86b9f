/* Exercise 4.1: threads that take turns, and end. */
#include "tests/lesson4/threads/thread_test.h"

void take_turns(void);
void end_and_go_on(void);

static void turn(void *argument)
{
	for (uint32_t i = 0; i < questions[1]; i++) {
		answer((uintptr_t)argument);
		yield();
	}
}

/* questions: threads, rounds, and an argument for each thread. */
void take_turns(void)
{
	uint32_t before = task_count;

	quiet();
	for (uint32_t i = 0; i < questions[0]; i++)
		begin_thread(turn, questions[2 + i]);
	await_threads(before);
}

static void end_by_return(void *argument)
{
	answer((uintptr_t)argument);
}

static void end_by_call(void *argument)
{
	answer((uintptr_t)argument);
	kthread_exit();
}

void end_and_go_on(void)
{
	quiet();
	begin_thread(end_by_return, 1);
	begin_thread(end_by_call, 2);
	begin_thread(end_by_return, 3);
	for (unsigned i = 0; i < 10; i++)
		yield();
	answer(task_count);
}
