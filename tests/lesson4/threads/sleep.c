/* Exercise 4.3: sleeps, a semaphore that is handed to and fro, and timers. */
#include "kernel/task/lock.h"
#include "kernel/task/timer.h"
#include "kernel/task/wait.h"
#include "tests/lesson4/threads/thread_test.h"

void a_short_sleep(void);
void hand_over(void);
void woken_before_the_sleep(void);
void woken_early(void);
void timer_in_the_past(void);

static struct semaphore semaphore, done;
static struct wait_queue queue;

/* questions: milliseconds. Answers how long the second of two sleeps took, in microseconds. */
void a_short_sleep(void)
{
	msleep(questions[0]);
	uint64_t start = time_ns();

	msleep(questions[0]);
	answer((uint32_t)(time_ns() - start) / 1000);
}

static void pass_on(void *argument)
{
	for (unsigned i = 0; i < 3; i++) {
		semaphore_down(&semaphore);
		answer((uintptr_t)argument);
		semaphore_up(&done);
	}
}

static uint32_t passed;

static void pass(void *argument)
{
	(void)argument;
	semaphore_down(&semaphore);
	passed++;
}

/* Answers at its end how many of two threads got a unit that is not there. */
void hand_over(void)
{
	uint32_t before = task_count;

	begin_thread(pass_on, 9);
	for (unsigned i = 0; i < 3; i++) {
		answer(i);
		semaphore_up(&semaphore);
		semaphore_down(&done);
	}
	await_threads(before);
	begin_thread(pass, 0);
	begin_thread(pass, 0);
	for (unsigned turns = 4; turns > 0; turns--)
		yield();
	answer(passed);
}

/* The wake-up comes between joining the queue and the sleep. Answers how long the sleep took. */
void woken_before_the_sleep(void)
{
	uint64_t start = time_ns();
	bool enabled = interrupts_disable();
	struct waiter waiter;

	wait_join(&queue, &waiter);
	wait_wake(&queue);
	wait_any(&waiter, 1, start + 20 * TICK_NS);
	wait_leave(&waiter);
	interrupts_restore(enabled);
	answer((uint32_t)(time_ns() - start) / 1000);
}

static void wake_it(void *argument)
{
	(void)argument;
	wait_wake(&queue);
}

/* Sleeps without a deadline, then with one, and is woken before it. Answers the first one's result.
 */
void woken_early(void)
{
	begin_thread(wake_it, 0);
	bool enabled = interrupts_disable();

	answer(wait_sleep_until(&queue, WAIT_FOREVER));
	begin_thread(wake_it, 0);
	wait_sleep_until(&queue, time_ns() + 50 * TICK_NS);
	interrupts_restore(enabled);
}

static uint32_t calls;

/* Starts itself again, for a time that has passed. */
static void once_more(struct timer *timer)
{
	if (++calls < 100)
		timer_start(timer, 60, once_more);
}

static struct timer earlier, later;
static uint32_t rung;

static void ring(struct timer *timer)
{
	rung += timer == &earlier ? 1 : 2;
}

/* Answers how often the timer was called: at a tick, and at the next one. Then which of two others
 * were called when one of them was due, which was started last: the sum of 1, the earlier, and 2.
 */
void timer_in_the_past(void)
{
	static struct timer again;

	quiet();
	interrupts_disable();
	timer_start(&again, 50, once_more);
	timers_expire(100);
	answer(calls);
	timers_expire(200);
	answer(calls);
	timer_start(&later, 400, ring);
	timer_start(&earlier, 300, ring);
	timers_expire(350);
	answer(rung);
}
