/* Exercise 4.2: threads that never yield, and one that wants to keep the processor. */
#include "tests/lesson4/threads/thread_test.h"

void two_spinners(void);
void holds(void);

static volatile bool going;
static volatile uint32_t counts[2];

static void spin(void *argument)
{
	while (going)
		counts[(uintptr_t)argument]++;
}

/* Threads that never yield; this one does nothing else. */
void two_spinners(void)
{
	uint64_t start = time_ns();

	going = true;
	begin_thread(spin, 0);
	begin_thread(spin, 1);
	while (time_ns() - start < 12 * TICK_NS)
		yield();
	going = false;
	answer(counts[0] > 0);
	answer(counts[1] > 0);
}

static void say(void *argument)
{
	answer((uintptr_t)argument);
}

static void hold(void *argument)
{
	preempt_disable();
	preempt_disable();
	begin_thread(say, 2);
	busy_ticks((uintptr_t)argument);
	preempt_enable();
	answer(1);
	preempt_enable();
	answer(3);
}

/* questions: ticks, more than a turn has. */
void holds(void)
{
	uint32_t before = task_count;

	begin_thread(hold, questions[0]);
	await_threads(before);
}
