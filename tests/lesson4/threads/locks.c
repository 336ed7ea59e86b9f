/* Exercise 4.4: who is urgent runs first; nobody starves; a mutex, and a loan. */
#include "kernel/task/lock.h"
#include "tests/lesson4/threads/thread_test.h"

void urgent_first(void);
void exclusion(void);
void one_loan(void);
void lifted(void);

static struct semaphore gate, done;
static struct mutex mutex;

static void say(void *argument)
{
	answer((uintptr_t)argument);
}

static void is_woken(void *argument)
{
	semaphore_down(&gate);
	answer((uintptr_t)argument);
}

static void wakes(void *argument)
{
	semaphore_up(&gate);
	answer((uintptr_t)argument);
}

void urgent_first(void)
{
	uint32_t before = task_count;

	quiet();
	begin_mlfq();
	begin_nice(say, 1, 10);
	begin_nice(say, 2, -10);
	begin_nice(say, 3, 0);
	await_threads(before);
	begin_nice(is_woken, 4, -20);
	yield();
	begin_nice(wakes, 5, 10);
	await_threads(before);
}

static void stay_inside(void *argument)
{
	for (unsigned i = 0; i < 2; i++) {
		mutex_lock(&mutex);
		answer((uintptr_t)argument);
		yield();
		yield();
		answer((uintptr_t)argument);
		mutex_unlock(&mutex);
		yield();
	}
}

static void enter_again(void *argument)
{
	mutex_lock(&mutex);
	yield();
	mutex_unlock(&mutex);
	mutex_lock(&mutex);
	answer((uintptr_t)argument);
	mutex_unlock(&mutex);
}

static void enter(void *argument)
{
	mutex_lock(&mutex);
	answer((uintptr_t)argument);
	mutex_unlock(&mutex);
}

void exclusion(void)
{
	uint32_t before = task_count;

	quiet();
	begin_thread(stay_inside, 1);
	begin_thread(stay_inside, 2);
	begin_thread(stay_inside, 3);
	await_threads(before);
	begin_thread(enter_again, 1);
	begin_thread(enter, 2);
	await_threads(before);
}

static void hold_first(void *argument)
{
	mutex_lock(&mutex);
	answer(sched_class->priority(current));
	semaphore_up(&done);
	semaphore_down(&gate);
	answer(sched_class->priority(current));
	mutex_unlock(&mutex);
	answer(sched_class->priority(current));
	answer((uintptr_t)argument);
}

void one_loan(void)
{
	uint32_t before = task_count;

	quiet();
	begin_mlfq();
	begin_nice(hold_first, 7, 10);
	semaphore_down(&done);
	begin_nice(enter, 8, -20);
	yield();
	semaphore_up(&gate);
	await_threads(before);
}

static uint8_t level(void)
{
	return *(volatile uint8_t *)&current->schedule.level;
}

/* Computes until it is at the lowest level, and then until it is at another one. */
static void sink_and_rise(void *argument)
{
	uint64_t start = time_ns();

	(void)argument;
	while (level() < 7 && time_ns() - start < 200 * TICK_NS)
		;
	answer(level());
	start = time_ns();
	while (level() == 7 && time_ns() - start < 150 * TICK_NS)
		;
	answer(level());
}

/* Answers at which level a thread of niceness 0 arrives that only computes, and to which one it is
 * lifted within one and a half seconds. */
void lifted(void)
{
	uint32_t before = task_count;

	begin_mlfq();
	begin_nice(sink_and_rise, 0, 0);
	await_threads(before);
}
