/* Exercise 4.4: feedback queues by themselves, and threads that lend urgency. */
#include "kernel/task/lock.h"
#include "tests/lesson4/hidden/class_steps.h"

#define TASKS	14
#define MUTEXES 14
#define UNLOCK	100
#define END	200

void class_steps(void);
void boost(void);
void commands(void);
void inversion(void);
void wake_up_delay(void);
void lock_twice(void);
void unlock_twice(void);
void unlock_of_another(void);
void unlock_in_a_hurry(void);
void woken_in_vain(void);
void equals_keep_their_places(void);

static struct semaphore gates[TASKS], done;
static struct mutex mutexes[MUTEXES];
static struct task *tasks[TASKS];
static uint32_t orders[TASKS];

/* ---- the class by itself ---- */

/* questions: steps, quantum. answers: stamps per tick, and the result of each step. */
void class_steps(void)
{
	begin_steps();
	sched_mlfq.tick(current);
	for (uint32_t i = 0; i < questions[0]; i++)
		answer(run_step(&sched_mlfq, &steps[3 * i]));
}

static void nothing(void *argument)
{
	(void)argument;
}

static void wait_until(uint64_t nanoseconds)
{
	while (time_ns() < nanoseconds)
		;
}

/* A quantum, less half a tick. */
static int64_t allotment_of_level_4(void)
{
	return (int64_t)time_cycles_per_tick() * sched_quantum - time_cycles_per_tick() / 2;
}

/* questions: the niceness of four threads. They sink, and a fifth one that sleeps; a second
 * later all are lifted, a second after that again, and once more after two seconds. */
void boost(void)
{
	const uint64_t second = 1010000000;
	uint64_t start;

	quiet();
	begin_mlfq();
	interrupts_disable();
	sched_mlfq.join(&fakes[0]);
	sched_mlfq.tick(&fakes[0]);
	sched_mlfq.join(&fakes[0]);
	for (unsigned i = 0; i < 4; i++) {
		tasks[i] = begin_nice(nothing, i, (int32_t)questions[i]);
		list_remove(&tasks[i]->schedule.in_queue);
		for (unsigned times = 0; times < 8; times++)
			sched_mlfq.charge(tasks[i], 1000000000u);
		sched_mlfq.charge(tasks[i], 1000);
		sched_mlfq.enqueue(tasks[i], SCHED_PREEMPTED);
		answer(tasks[i]->schedule.level);
	}
	tasks[4] = begin_nice(nothing, 4, 0);
	list_remove(&tasks[4]->schedule.in_queue);
	tasks[4]->life = TASK_BLOCKED;
	sched_mlfq.charge(tasks[4], 4000000000u);
	answer(sched_mlfq.tick(&fakes[0]));
	answer(tasks[0]->schedule.level);
	start = time_ns();
	time_initialize(time_tsc_khz() / 4); /* from 0 on, and four times as fast */
	wait_until(start + second);
	answer(sched_mlfq.tick(&fakes[0]));
	for (unsigned i = 0; i < 4; i++)
		answer(tasks[i]->schedule.level);
	for (unsigned i = 0; i < 4; i++)
		answer(sched_mlfq.pick()->pid - tasks[0]->pid);
	sched_mlfq.join(&fakes[0]);
	answer(sched_mlfq.tick(&fakes[0]));
	answer(tasks[4]->schedule.level);
	sched_mlfq.charge(tasks[4], allotment_of_level_4() - 1);
	answer(tasks[4]->schedule.level);
	sched_mlfq.charge(tasks[4], 1);
	answer(tasks[4]->schedule.level);
	wait_until(time_ns() + second);
	sched_mlfq.join(&fakes[0]);
	answer(sched_mlfq.tick(&fakes[0]));
	wait_until(time_ns() + 2 * second);
	sched_mlfq.join(&fakes[0]);
	answer(sched_mlfq.tick(&fakes[0]));
	sched_mlfq.join(&fakes[0]);
	answer(sched_mlfq.tick(&fakes[0]));
}

/* ---- threads that lock and unlock at command ---- */

static void obey(void *argument)
{
	uint32_t number = (uintptr_t)argument;

	for (;;) {
		semaphore_down(&gates[number]);
		uint32_t order = orders[number];

		if (order == END)
			return;
		if (order >= UNLOCK)
			mutex_unlock(&mutexes[order - UNLOCK]);
		else
			mutex_lock(&mutexes[order]);
	}
}

static uint32_t number_of(const struct task *task)
{
	for (uint32_t i = 0; i < TASKS; i++)
		if (task && task == tasks[i])
			return i;
	return NO_TASK;
}

/* questions: threads, their niceness, mutexes, commands (thread, order), as far as there is room;
 * all others are in steps. answers: after each command urgencies and owners. */
void commands(void)
{
	uint32_t count = questions[0], locks = questions[1];

	quiet();
	begin_mlfq();
	for (uint32_t i = 0; i < count; i++)
		tasks[i] = begin_nice(obey, i, (int32_t)questions[3 + i]);
	yield();
	for (uint32_t i = 0; i < questions[2]; i++) {
		uint32_t number = steps[2 * i];

		orders[number] = steps[2 * i + 1];
		semaphore_up(&gates[number]);
		yield();
		for (uint32_t j = 0; j < count; j++)
			answer(sched_class->priority(tasks[j]));
		for (uint32_t j = 0; j < locks; j++)
			answer(number_of(mutexes[j].owner));
	}
}

/* ---- with the clock ---- */

static uint64_t start_ns;
static volatile bool going = true;

static uint32_t ticks_since_start(void)
{
	return (uint32_t)(time_ns() - start_ns) / TICK_NS;
}

static void spin_for(uint32_t ticks)
{
	for (uint64_t start = time_ns(); time_ns() - start < ticks * TICK_NS;)
		;
}

static void slow_holder(void *argument)
{
	(void)argument;
	mutex_lock(&mutexes[0]);
	semaphore_up(&done);
	spin_for(4);
	mutex_unlock(&mutexes[0]);
	semaphore_up(&done);
}

static void calculate(void *argument)
{
	(void)argument;
	spin_for(60);
	answer(2);
	semaphore_up(&done);
}

static void hurry(void *argument)
{
	(void)argument;
	mutex_lock(&mutexes[0]);
	answer(1);
	answer(ticks_since_start());
	mutex_unlock(&mutexes[0]);
	semaphore_up(&done);
}

/* A lock's holder that is not urgent, a calculation that is more urgent, and somebody in a hurry.
 */
void inversion(void)
{
	sched_use("mlfq");
	begin_nice(slow_holder, 0, 19);
	semaphore_down(&done);
	start_ns = time_ns();
	begin_nice(calculate, 0, 0);
	begin_nice(hurry, 0, -20);
	for (unsigned i = 0; i < 3; i++)
		semaphore_down(&done);
}

static void hog(void *argument)
{
	(void)argument;
	while (going)
		;
}

static void serve_person(void *argument)
{
	uint32_t worst = 0;

	(void)argument;
	for (unsigned i = 0; i < 20; i++) {
		uint64_t deadline = time_ns() + 3 * TICK_NS;

		msleep(30);
		uint32_t late = (uint32_t)(time_ns() - deadline) / 1000;

		worst = late > worst ? late : worst;
		busy(100000);
	}
	answer(worst);
	semaphore_up(&done);
}

/* Four calculations, and a thread that sleeps most of the time. */
void wake_up_delay(void)
{
	sched_use("mlfq");
	for (unsigned i = 0; i < 4; i++)
		begin_thread(hog, i);
	begin_thread(serve_person, 0);
	semaphore_down(&done);
	going = false;
}

/* ---- wrong use, which is to end in a panic ---- */

void lock_twice(void)
{
	quiet();
	mutex_lock(&mutexes[0]);
	mutex_lock(&mutexes[0]);
}

void unlock_twice(void)
{
	quiet();
	mutex_lock(&mutexes[0]);
	mutex_unlock(&mutexes[0]);
	mutex_unlock(&mutexes[0]);
}

static void hold_for_ever(void *argument)
{
	(void)argument;
	mutex_lock(&mutexes[0]);
	semaphore_down(&gates[0]);
}

void unlock_of_another(void)
{
	quiet();
	begin_thread(hold_for_ever, 0);
	yield();
	mutex_unlock(&mutexes[0]);
}

/* ---- the end of a loan ---- */

static void lock_and_say(void *argument)
{
	mutex_lock(&mutexes[0]);
	answer((uintptr_t)argument);
	mutex_unlock(&mutexes[0]);
}

/* Somebody wakes a thread that waits for the mutex, which is not free. */
void woken_in_vain(void)
{
	uint32_t before = task_count;

	quiet();
	mutex_lock(&mutexes[0]);
	struct task *task = begin_thread(lock_and_say, 5);

	yield();
	answer(task->life == TASK_BLOCKED);
	sched_wake(task);
	yield();
	answer(7);
	mutex_unlock(&mutexes[0]);
	await_threads(before);
}

static void hold_and_say(void *argument)
{
	mutex_lock(&mutexes[0]);
	yield();
	answer((uintptr_t)argument);
	mutex_unlock(&mutexes[0]);
}

static void say(void *argument)
{
	answer((uintptr_t)argument);
}

/* Who holds the mutex is before an equal in the queue, when a third equal wants the mutex. */
void equals_keep_their_places(void)
{
	uint32_t before = task_count;

	quiet();
	sched_use("mlfq");
	begin_thread(hold_and_say, 1);
	yield();
	begin_thread(say, 2);
	mutex_lock(&mutexes[0]);
	mutex_unlock(&mutexes[0]);
	await_threads(before);
}

/* It is not urgent, and may be pre-empted. */
static void unlock_and_say(void *argument)
{
	mutex_lock(&mutexes[0]);
	begin_nice(lock_and_say, 1, -20);
	yield();
	mutex_unlock(&mutexes[0]);
	answer((uintptr_t)argument);
}

void unlock_in_a_hurry(void)
{
	uint32_t before = task_count;

	quiet();
	begin_mlfq();
	begin_nice(unlock_and_say, 2, 10);
	await_threads(before);
}
