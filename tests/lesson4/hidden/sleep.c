/* Exercise 4.3: timers, sleepers and those who wake them. */
#include "kernel/task/lock.h"
#include "kernel/task/timer.h"
#include "kernel/task/wait.h"
#include "tests/lesson4/threads/thread_test.h"

#define TIMERS 16

void alarms(void);
void order_of_timers(void);
void timers_in_timers(void);
void no_sleep(void);
void one_sleep(void);
void woken_before(void);
void two_queues(void);
void one_by_one(void);
void most_urgent_first(void);
void from_an_interrupt(void);
void one_leaves(void);
void early_wake(void);
void stubborn(void);
void many_hands(void);
void wrong_wake(void);
void signals(void);
void units_at_once(void);
void flags(void);

static struct wait_queue queue;
static struct semaphore semaphore, done;

static uint32_t microseconds_since(uint64_t start)
{
	return (uint32_t)(time_ns() - start) / 1000;
}

static uint32_t interrupt_flag(void)
{
	uint32_t flags;

	__asm__ volatile("pushfl; popl %0" : "=r"(flags));
	return flags & EFLAGS_INTERRUPTS;
}

static uint64_t begin_of_alarms;

static void sleep_and_say(void *argument)
{
	uint32_t number = (uintptr_t)argument;

	msleep(questions[1 + number]);
	answer(number);
	answer(microseconds_since(begin_of_alarms));
	semaphore_up(&done);
}

/* questions: threads, and milliseconds for each. */
void alarms(void)
{
	preempt_disable();
	begin_of_alarms = time_ns();
	for (uint32_t i = 0; i < questions[0]; i++)
		begin_thread(sleep_and_say, i);
	for (uint32_t i = 0; i < questions[0]; i++)
		semaphore_down(&done);
}

/* ---- timers, without a clock ---- */

static struct timer timers_here[TIMERS];

static void say_timer(struct timer *timer)
{
	answer(timer - timers_here);
	answer(timer_is_running(timer));
}

/* questions: base (two words); timers, their offsets; how many are cancelled again; times, their
 * offsets. An answer of 999 ends each time. */
void order_of_timers(void)
{
	uint64_t base = questions[0] | (uint64_t)questions[1] << 32;
	const uint32_t *next = questions + 2;
	uint32_t count = *next++;

	quiet();
	interrupts_disable();
	for (uint32_t i = 0; i < count; i++)
		timer_start(&timers_here[i], base + (int32_t)*next++, say_timer);
	for (uint32_t cancelled = *next++; cancelled > 0; cancelled--) {
		timer_cancel(&timers_here[*next]);
		timer_cancel(&timers_here[*next++]);
	}
	for (uint32_t times = *next++; times > 0; times--) {
		timers_expire(base + (int32_t)*next++);
		answer(999);
	}
}

static void start_another(struct timer *timer)
{
	answer(timer - timers_here);
	if (answer_count == 1) {
		timer_start(&timers_here[2], 90, start_another);
		timer_cancel(&timers_here[1]);
		timer_start(timer, 101, start_another);
	}
}

/* The first one starts a third, whose time has passed, cancels the second, and starts itself for
 * later. */
void timers_in_timers(void)
{
	quiet();
	interrupts_disable();
	timer_start(&timers_here[0], 50, start_another);
	timer_start(&timers_here[1], 60, start_another);
	timers_expire(100);
	answer(999);
	timers_expire(101);
	answer(999);
	answer(timer_is_running(&timers_here[0]) || timer_is_running(&timers_here[1]));
}

/* ---- sleepers ---- */

/* What asks for no sleep does not give the processor away. */
void no_sleep(void)
{
	uint32_t total = sched_trace.total;

	msleep(0);
	answer(sched_trace.total - total);
	interrupts_disable();
	answer(wait_sleep_until(&queue, time_ns() - 1));
	answer(wait_sleep_until(&queue, 0));
	answer(sched_trace.total - total);
	answer(queue.first != NULL);
}

void one_sleep(void)
{
	msleep(questions[0]);
}

void woken_before(void)
{
	struct waiter waiter;
	uint32_t total = sched_trace.total;

	wait_join(&queue, &waiter);
	wait_wake(&queue);
	answer(wait_any(&waiter, 1, time_ns() + 5 * TICK_NS));
	wait_leave(&waiter);
	answer(sched_trace.total - total);
	wait_join(&queue, &waiter);
	wait_wake_one(&queue);
	answer(wait_any(&waiter, 1, time_ns() + 5 * TICK_NS));
	wait_leave(&waiter);
	answer(sched_trace.total - total);
	semaphore_up(&semaphore);
	semaphore_up(&semaphore);
	semaphore_down(&semaphore);
	semaphore_down(&semaphore);
	answer(sched_trace.total - total);
	answer(semaphore.count);
}

static struct wait_queue other;

static void wake_other(void *argument)
{
	(void)argument;
	wait_wake(&other);
}

void two_queues(void)
{
	struct waiter waiters[2];

	quiet();
	wait_join(&queue, &waiters[0]);
	wait_join(&other, &waiters[1]);
	begin_thread(wake_other, 0);
	answer(wait_any(waiters, 2, WAIT_FOREVER));
	answer(waiters[0].is_woken);
	answer(waiters[1].is_woken);
	wait_leave(&waiters[0]);
	wait_leave(&waiters[1]);
	wait_leave(&waiters[1]);
	answer(queue.first || other.first);
	wait_join(&queue, &waiters[0]);
	wait_join(&other, &waiters[1]);
	wait_wake(&other);
	answer(wait_any(waiters, 2, time_ns() - 1));
	wait_leave(&waiters[0]);
	wait_leave(&waiters[1]);
}

static void wait_and_say(void *argument)
{
	interrupts_disable();
	wait_sleep_until(&queue, WAIT_FOREVER);
	answer((uintptr_t)argument);
	interrupts_enable();
}

static void yield_often(void)
{
	for (unsigned i = 0; i < 8; i++)
		yield();
	answer(999);
}

void one_by_one(void)
{
	quiet();
	wait_wake_one(&queue);
	for (unsigned i = 0; i < 5; i++)
		begin_thread(wait_and_say, i);
	yield_often();
	wait_wake_one(&queue);
	yield_often();
	interrupts_disable();
	wait_wake_one(&queue);
	wait_wake_one(&queue);
	interrupts_enable();
	yield_often();
	wait_wake(&queue);
	yield_often();
	for (unsigned i = 5; i < 8; i++)
		begin_thread(wait_and_say, i);
	yield_often();
	interrupts_disable();
	wait_wake_one(&queue);
	wait_wake(&queue);
	interrupts_enable();
	yield_often();
}

/* questions: the niceness of five threads. */
void most_urgent_first(void)
{
	quiet();
	sched_use("mlfq");
	sched_set_nice(current, 19);
	for (unsigned i = 0; i < 5; i++) {
		interrupts_disable();
		sched_set_nice(begin_thread(wait_and_say, i), (int32_t)questions[i]);
		interrupts_enable();
		yield_often();
	}
	/* Niceness alone does not change a level: begin anew. */
	sched_use("rr");
	sched_use("mlfq");
	for (unsigned i = 0; i < 5; i++) {
		wait_wake_one(&queue);
		yield_often();
	}
}

static void up_in_interrupt(struct timer *timer)
{
	uint32_t total = sched_trace.total;

	(void)timer;
	semaphore_up(&semaphore);
	wait_wake(&queue);
	wait_wake_one(&queue);
	answer(sched_trace.total - total);
	answer(interrupt_flag());
}

static void down_and_say(void *argument)
{
	semaphore_down(&semaphore);
	answer((uintptr_t)argument);
	semaphore_up(&done);
}

static void wait_silently(void *argument)
{
	(void)argument;
	interrupts_disable();
	wait_sleep_until(&queue, WAIT_FOREVER);
	interrupts_enable();
}

static void be_interrupted(void *argument)
{
	uint64_t start = time_ns();

	(void)argument;
	while (time_ns() - start < 5 * TICK_NS)
		;
	semaphore_up(&done);
}

/* A timer wakes a thread, in the middle of another one that may be pre-empted. */
void from_an_interrupt(void)
{
	static struct timer timer;

	sched_use("mlfq");
	begin_thread(down_and_say, 7);
	begin_thread(wait_silently, 0);
	msleep(20);
	sched_set_nice(begin_thread(be_interrupted, 0), 10);
	timer_start(&timer, time_ns() + 2 * TICK_NS, up_in_interrupt);
	semaphore_down(&done);
	semaphore_down(&done);
}

static void wait_with_limit(void *argument)
{
	interrupts_disable();
	answer(wait_sleep_until(&queue, time_ns() + 2 * TICK_NS));
	answer(wait_sleep_until(&queue, time_ns() - 1));
	answer((uintptr_t)argument);
	interrupts_enable();
}

/* The second of three leaves the queue. */
void one_leaves(void)
{
	begin_thread(wait_and_say, 1);
	begin_thread(wait_with_limit, 2);
	begin_thread(wait_and_say, 3);
	msleep(60);
	answer(999);
	wait_wake_one(&queue);
	msleep(20);
	wait_wake_one(&queue);
	msleep(20);
	answer(queue.first != NULL);
}

static void wait_long(void *argument)
{
	uint64_t start = time_ns();

	(void)argument;
	interrupts_disable();
	wait_sleep_until(&queue, time_ns() + 10 * TICK_NS);
	answer(microseconds_since(start));
	semaphore_up(&done);
	interrupts_enable();
}

void early_wake(void)
{
	begin_thread(wait_long, 0);
	msleep(20);
	wait_wake(&queue);
	semaphore_down(&done);
}

static void sleep_stubbornly(void *argument)
{
	uint64_t start = time_ns();

	(void)argument;
	msleep(80);
	answer(microseconds_since(start));
	semaphore_up(&done);
}

/* Somebody wakes a thread that wants its sleep. */
void stubborn(void)
{
	struct task *task = begin_thread(sleep_stubbornly, 0);

	msleep(20);
	sched_wake(task);
	task->has_signal = true;
	semaphore_down(&done);
}

static uint32_t produced, consumed;

static void produce(void *argument)
{
	for (uint32_t i = 0; i < questions[1]; i++) {
		produced++;
		semaphore_up(&semaphore);
		if ((i ^ (uintptr_t)argument) % 5 == 0)
			yield();
	}
	semaphore_up(&done);
}

static void consume(void *argument)
{
	(void)argument;
	for (uint32_t i = 0; i < questions[1]; i++) {
		semaphore_down(&semaphore);
		bool enabled = interrupts_disable();

		consumed++;
		if (semaphore.count > questions[0] * questions[1] || consumed > produced)
			answer(1);
		interrupts_restore(enabled);
	}
	semaphore_up(&done);
}

/* questions: producers and consumers, units of each. */
void many_hands(void)
{
	sched_quantum = 1;
	for (uint32_t i = 0; i < questions[0]; i++) {
		begin_thread(consume, i);
		begin_thread(produce, i);
	}
	for (uint32_t i = 0; i < 2 * questions[0]; i++)
		semaphore_down(&done);
	answer(consumed);
	answer(semaphore.count);
	answer(semaphore.waiters.first != NULL);
}

/* As a signal wakes it. */
void wrong_wake(void)
{
	quiet();
	struct task *task = begin_thread(down_and_say, 5);

	yield_often();
	task->has_signal = true;
	sched_wake(task);
	yield_often();
	answer(semaphore.count);
	semaphore_up(&semaphore);
	yield_often();
	answer(semaphore.count);
}

/* Two tasks wait, and two units come before either of them runs. */
void units_at_once(void)
{
	quiet();
	begin_thread(down_and_say, 5);
	begin_thread(down_and_say, 6);
	yield_often();
	interrupts_disable();
	semaphore_up(&semaphore);
	semaphore_up(&semaphore);
	interrupts_enable();
	yield_often();
	answer(semaphore.count);
}

/* A signal waits, for which this thread does not sleep. */
void signals(void)
{
	struct waiter waiter;
	uint32_t total = sched_trace.total;

	current->has_signal = true;
	wait_join(&queue, &waiter);
	answer(wait_any(&waiter, 1, WAIT_FOREVER));
	answer(wait_any(&waiter, 1, 0));
	wait_wake(&queue);
	answer(wait_any(&waiter, 1, WAIT_FOREVER));
	wait_leave(&waiter);
	answer(sched_trace.total - total);
}

/* The interrupt flag behind each function, off and on. */
void flags(void)
{
	static struct timer timer;
	struct waiter waiter;

	for (unsigned on = 0; on < 2; on++) {
		interrupts_disable();
		interrupts_restore(on);
		wait_join(&queue, &waiter);
		answer(interrupt_flag());
		wait_wake_one(&queue);
		answer(interrupt_flag());
		wait_wake(&queue);
		answer(interrupt_flag());
		wait_any(&waiter, 1, WAIT_FOREVER);
		answer(interrupt_flag());
		wait_leave(&waiter);
		answer(interrupt_flag());
		semaphore_up(&semaphore);
		answer(interrupt_flag());
		semaphore_down(&semaphore);
		answer(interrupt_flag());
		timer_start(&timer, time_ns() + 1000 * TICK_NS, up_in_interrupt);
		answer(interrupt_flag());
		timer_cancel(&timer);
		answer(interrupt_flag());
		msleep(1);
		answer(interrupt_flag());
	}
}
