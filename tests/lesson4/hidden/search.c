/*
 * A complete search for races with the timer: a scenario is repeated, and in each repetition a tick
 * comes before another instruction, until it has come before every one of the exercise's functions
 * that is executed with interrupts enabled. No other interrupt comes at all, so the answer is the
 * same every time.
 *
 * search.h does it: the idea is that of Landslide (Carnegie Mellon, 15-410), which tries the
 * interleavings of threads.
 *
 * A scenario's verdict is 0, or the number of what went wrong.
 */
#include "kernel/task/lock.h"
#include "tests/lesson4/hidden/search.h"
#include "tests/lesson4/threads/thread_test.h"

#define TRIES 12 /* yields, within which any thread of these scenarios comes to its end */

void wake_up_in_interrupt(void);
void wake_up_by_thread(void);
void units_in_interrupt(void);
void units_of_threads(void);
void event_in_interrupt(void);
void queues_of_threads(void);
void timers_of_threads(void);
void short_sleep(void);
void mutex_of_threads(void);
void lives_of_threads(void);
void end_of_holding(void);
void fair_turns(void);

static volatile unsigned arrived;
static struct semaphore semaphore;
static struct wait_queue queue;
static struct timer alarm_timer;

/* Yields until this many threads have arrived. */
static bool all_arrive(unsigned count)
{
	for (unsigned i = 0; i < TRIES && arrived < count; i++)
		yield();
	return arrived == count;
}

static void await_ends(uint32_t before)
{
	for (unsigned i = 0; i < TRIES && task_count > before; i++)
		yield();
}

/* ---- semaphores ---- */

static void up_in_interrupt(struct timer *timer)
{
	(void)timer;
	semaphore_up(&semaphore);
}

static void down(void *argument)
{
	(void)argument;
	semaphore_down(&semaphore);
	arrived++;
}

static void up(void *argument)
{
	(void)argument;
	semaphore_up(&semaphore);
}

/* 2: a unit is there, or was taken, that nobody gave or took. */
static uint32_t semaphore_verdict(unsigned waiters, uint32_t before)
{
	uint32_t verdict = 0;

	if (!all_arrive(waiters))
		verdict = 1;
	else if (semaphore.count != 0 || semaphore.waiters.first)
		verdict = 2;
	while (arrived < waiters) {
		semaphore_up(&semaphore);
		all_arrive(waiters);
	}
	await_ends(before);
	semaphore.count = 0;
	return verdict;
}

static uint32_t one_wake_up_in_interrupt(void)
{
	uint32_t before = task_count;

	arrived = 0;
	timer_start(&alarm_timer, time_ns() - 1, up_in_interrupt);
	begin_thread(down, 0);
	all_arrive(1);
	if (timer_is_running(&alarm_timer))
		tick();
	return semaphore_verdict(1, before);
}

/* 1: the thread sleeps although there was a unit. */
void wake_up_in_interrupt(void)
{
	search(one_wake_up_in_interrupt);
}

static uint32_t one_wake_up_by_thread(void)
{
	uint32_t before = task_count;

	arrived = 0;
	begin_thread(down, 0);
	begin_thread(up, 0);
	begin_thread(down, 0);
	begin_thread(up, 0);
	return semaphore_verdict(2, before);
}

void wake_up_by_thread(void)
{
	search(one_wake_up_by_thread);
}

/* Somebody takes and gives while an interrupt gives: two are given, and one is taken. */
static uint32_t one_of_interrupt(void)
{
	uint32_t verdict = 0;

	semaphore.count = 0;
	timer_start(&alarm_timer, time_ns() - 1, up_in_interrupt);
	semaphore_up(&semaphore);
	semaphore_down(&semaphore);
	if (timer_is_running(&alarm_timer))
		tick();
	if (semaphore.count != 1 || semaphore.waiters.first)
		verdict = 2;
	semaphore.count = 0;
	return verdict;
}

void units_in_interrupt(void)
{
	search(one_of_interrupt);
}

static void take_and_give(void *argument)
{
	(void)argument;
	semaphore_down(&semaphore);
	semaphore_up(&semaphore);
	semaphore_down(&semaphore);
	arrived++;
}

static uint32_t one_of_threads(void)
{
	uint32_t before = task_count;

	arrived = 0;
	semaphore.count = 3;
	for (unsigned i = 0; i < 3; i++)
		begin_thread(take_and_give, 0);
	return semaphore_verdict(3, before);
}

void units_of_threads(void)
{
	search(one_of_threads);
}

/* ---- queues, timers, sleep ---- */

static volatile bool happened;

static void happen(struct timer *timer)
{
	(void)timer;
	happened = true;
	wait_wake(&queue);
}

/* As the head of wait.c has it: join, look, wait, leave. */
static void await_event(void *argument)
{
	struct waiter waiter;

	(void)argument;
	wait_join(&queue, &waiter);
	while (!happened)
		wait_any(&waiter, 1, WAIT_FOREVER);
	wait_leave(&waiter);
	arrived++;
}

static uint32_t one_event(void)
{
	uint32_t before = task_count, verdict = 0;

	arrived = 0;
	happened = false;
	timer_start(&alarm_timer, time_ns() - 1, happen);
	begin_thread(await_event, 0);
	all_arrive(1);
	if (timer_is_running(&alarm_timer))
		tick();
	if (!all_arrive(1))
		verdict = 1;
	else if (queue.first)
		verdict = 2;
	while (arrived == 0) {
		wait_wake(&queue);
		all_arrive(1);
	}
	await_ends(before);
	queue.first = NULL;
	return verdict;
}

void event_in_interrupt(void)
{
	search(one_event);
}

static unsigned length(void)
{
	unsigned count = 0;

	for (const struct waiter *each = queue.first; each && count < 9; each = each->next)
		count++;
	return count;
}

static unsigned wrong_lengths;

static void join_and_leave(void *argument)
{
	struct waiter waiter;

	(void)argument;
	wait_join(&queue, &waiter);
	arrived++;
	all_arrive(3);
	preempt_disable();
	wrong_lengths += arrived == 3 && length() == 0;
	preempt_enable();
	wait_leave(&waiter);
}

static uint32_t one_queue(void)
{
	uint32_t before = task_count, verdict = 0;

	arrived = wrong_lengths = 0;
	queue.first = NULL;
	for (unsigned i = 0; i < 3; i++)
		begin_thread(join_and_leave, 0);
	all_arrive(3);
	await_ends(before);
	if (task_count > before || queue.first || wrong_lengths)
		verdict = 2;
	return verdict;
}

void queues_of_threads(void)
{
	search(one_queue);
}

static unsigned rung;

static void ring(struct timer *timer)
{
	(void)timer;
	rung++;
}

static void start_and_cancel(void *argument)
{
	struct timer first, second;

	(void)argument;
	timer_start(&first, time_ns() + 3000 * TICK_NS, ring);
	timer_start(&second, time_ns() + 2000 * TICK_NS, ring);
	timer_cancel(&first);
	timer_cancel(&second);
	arrived++;
}

/* Three threads, and a fourth timer that is due: it rings once, and no other does. */
static uint32_t some_timers(void)
{
	uint32_t before = task_count;

	arrived = rung = 0;
	timer_start(&alarm_timer, time_ns() - 1, ring);
	for (unsigned i = 0; i < 3; i++)
		begin_thread(start_and_cancel, 0);
	all_arrive(3);
	await_ends(before);
	if (timer_is_running(&alarm_timer))
		tick();
	bool enabled = interrupts_disable(); /* as the tick calls it */

	timers_expire(time_ns() + 9000 * TICK_NS);
	interrupts_restore(enabled);
	return rung == 1 && arrived == 3 ? 0 : 2;
}

void timers_of_threads(void)
{
	search(some_timers);
}

static uint64_t woke;

static void sleep_shortly(void *argument)
{
	uint64_t start = time_ns();

	(void)argument;
	msleep(1);
	woke = time_ns() - start;
	arrived++;
}

/* 1: the sleep does not end. 2: it ends too early. */
static uint32_t one_sleep(void)
{
	uint32_t before = task_count, verdict = 0;

	arrived = 0;
	preempt_disable(); /* tick leaves the change to yield, and the stepping on */
	begin_thread(sleep_shortly, 0);
	for (uint64_t start = time_ns(); arrived == 0 && time_ns() - start < TICK_NS; tick())
		yield();
	if (arrived == 0)
		verdict = 1;
	else if (woke < 1000000)
		verdict = 2;
	for (struct task *task = task_next(NULL); task; task = task_next(task))
		sched_wake(task);
	for (uint64_t start = time_ns(); task_count > before && time_ns() - start < TICK_NS; tick())
		yield();
	preempt_enable();
	return verdict;
}

void short_sleep(void)
{
	search(one_sleep);
}

/* ---- mutexes ---- */

static struct mutex mutex;
static volatile unsigned inside, collisions;

static void enter_and_leave(void *argument)
{
	(void)argument;
	mutex_lock(&mutex);
	collisions += inside++ > 0;
	yield();
	inside--;
	mutex_unlock(&mutex);
	arrived++;
}

/* 1: somebody waits for ever. 2: two are inside at a time. 3: something is left over. */
static uint32_t one_mutex(void)
{
	uint32_t before = task_count, verdict = 0;

	arrived = inside = collisions = 0;
	for (unsigned i = 0; i < 3; i++)
		begin_thread(enter_and_leave, 0);
	if (!all_arrive(3))
		verdict = 1;
	else if (collisions)
		verdict = 2;
	else if (mutex.owner || mutex.waiters.first || current->held)
		verdict = 3;
	await_ends(before);
	return verdict;
}

void mutex_of_threads(void)
{
	search(one_mutex);
}

/* ---- threads ---- */

static void arrive(void *argument)
{
	arrived += (uintptr_t)argument;
}

static void be_mother(void *argument)
{
	begin_thread(arrive, (uintptr_t)argument);
	arrived++;
}

/* 1: a thread has not run to its end. 2: one has run too often, or with another argument. */
static uint32_t two_lives(void)
{
	uint32_t before = task_count;

	arrived = 0;
	begin_thread(be_mother, 10);
	begin_thread(arrive, 100);
	await_ends(before);
	if (task_count != before)
		return 1;
	return arrived == 111 ? 0 : 2;
}

void lives_of_threads(void)
{
	search(two_lives);
}

static uint32_t early, late;

static void hold(void *argument)
{
	uint32_t total;

	(void)argument;
	preempt_disable();
	total = sched_trace.total;
	begin_thread(arrive, 1);
	begin_thread(arrive, 1);
	tick();
	early = sched_trace.total - total;
	preempt_enable();
	late = sched_trace.total - total;
}

/* A thread that has disabled pre-emption loses the processor at the end of that, and not before. 1:
 * it keeps it. 2: it loses it in between. */
static uint32_t one_holding(void)
{
	uint32_t before = task_count;

	arrived = 0;
	begin_thread(hold, 0);
	await_ends(before);
	if (early)
		return 2;
	return late && arrived == 2 ? 0 : 1;
}

void end_of_holding(void)
{
	search(one_holding);
}

/* ---- fair shares ---- */

static void take_turns(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < 3; i++)
		yield();
	arrived++;
}

/* 1: a thread has not come to its end. */
static uint32_t some_turns(void)
{
	uint32_t before = task_count;

	arrived = 0;
	for (unsigned i = 0; i < 4; i++)
		begin_thread(take_turns, 0);
	for (unsigned i = 0; i < 5 * TRIES && task_count > before; i++)
		yield();
	return arrived == 4 && task_count == before ? 0 : 1;
}

/* The class's functions have interrupts disabled: there may be no place at all for a tick. */
void fair_turns(void)
{
	sched_use("fair");
	search(some_turns);
}
