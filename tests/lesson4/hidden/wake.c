/* Exercise 4.3: who sleeps, and who is woken, as the scheduler sees it. */
#include "kernel/task/lock.h"
#include "kernel/task/wait.h"
#include "tests/lesson4/threads/thread_test.h"

void out_of_the_queue(void);
void hurry_at_once(void);
void every_waiter(void);

static struct wait_queue queue, other;
static struct semaphore semaphore;
static volatile bool going_on;

static void sleep_once(void *argument)
{
	switch ((uintptr_t)argument) {
	case 0:
		semaphore_down(&semaphore);
		break;
	case 1:
		wait_event(&queue, going_on);
		break;
	default:
		msleep(10);
	}
}

/* Three sleepers, each in its way. answers: for each, whether it competes for the processor, how
 * often it has got it while this thread offered it, and whether a signal may end its sleep. */
void out_of_the_queue(void)
{
	struct task *tasks[3];

	quiet();
	for (unsigned i = 0; i < 3; i++)
		tasks[i] = begin_thread(sleep_once, i);
	yield();
	for (unsigned i = 0; i < 3; i++) {
		uint32_t switches = tasks[i]->switches;

		for (unsigned times = 0; times < 5; times++)
			yield();
		answer(tasks[i]->life == TASK_READY || tasks[i]->schedule.is_queued);
		answer(tasks[i]->switches - switches);
		answer(tasks[i]->life == TASK_SLEEPING);
	}
}

static void say_when_woken(void *argument)
{
	switch ((uintptr_t)argument) {
	case 0:
		semaphore_down(&semaphore);
		break;
	default:
		interrupts_disable();
		wait_sleep_until(&queue, WAIT_FOREVER);
		interrupts_enable();
	}
	answer((uintptr_t)argument);
}

/* It is not in a hurry, and may be pre-empted. */
static void wake_each(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < 3; i++) {
		begin_nice(say_when_woken, i, -20);
		yield();
		if (i == 0)
			semaphore_up(&semaphore);
		else if (i == 1)
			wait_wake(&queue);
		else
			wait_wake_one(&queue);
		answer(10 + i);
		yield();
	}
}

void hurry_at_once(void)
{
	uint32_t before = task_count;

	quiet();
	begin_mlfq();
	begin_nice(wake_each, 0, 10);
	await_threads(before);
}

static unsigned calls;

static void count_call(struct waiter *waiter)
{
	(void)waiter;
	calls++;
}

/* Three waiters of one queue, the second a function; then the one in the middle is woken. */
void every_waiter(void)
{
	struct waiter waiters[3];

	quiet();
	for (unsigned i = 0; i < 3; i++)
		wait_join(&queue, &waiters[i]);
	waiters[1].function = count_call;
	waiters[1].calls = true;
	wait_wake(&queue);
	answer(calls);
	for (unsigned i = 0; i < 3; i++) {
		answer(waiters[i].is_woken);
		wait_leave(&waiters[i]);
	}
	wait_join(&queue, &waiters[0]);
	wait_join(&other, &waiters[1]);
	wait_join(&queue, &waiters[2]);
	wait_wake(&other);
	answer(wait_any(waiters, 3, time_ns() - 1));
	for (unsigned i = 0; i < 3; i++)
		wait_leave(&waiters[i]);
}
