/* Exercise 4.2: threads that never yield, one that wants to keep the processor, and one that does
 * not use all of its turn. */
#include "drivers/clock/pit.h"
#include "kernel/task/sched_class.h"
#include "tests/lesson4/threads/thread_test.h"

void two_spinners(void);
void holds(void);
void turn_after_yield(void);

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

static volatile bool is_second_turn;
static volatile uint32_t turn_began, turn_ended;

/* Its first turn ends a tick early, by a yield; the second one by the clock. */
static void yields_once(void *argument)
{
	(void)argument;
	busy_ticks(sched_quantum - 1);
	yield();
	turn_began = pit_ticks();
	is_second_turn = true;
	while (!turn_ended)
		;
}

static void watches(void *argument)
{
	(void)argument;
	while (!is_second_turn)
		yield();
	turn_ended = pit_ticks();
}

/* questions: ticks of a turn. Answers how many ticks the second turn had. */
void turn_after_yield(void)
{
	uint32_t before = task_count;

	sched_quantum = questions[0];
	begin_thread(yields_once, 0);
	begin_thread(watches, 0);
	await_threads(before);
	answer(turn_ended - turn_began);
}
