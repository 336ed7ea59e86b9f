/*
 * The scheduler: what all its classes have in common.
 *
 * A task that is TASK_READY either runs or is in the queue of the class in use; every other one is
 * in no queue. A class decides the order only: counting, charging and switching are here. A task's
 * place in its queue depends on its class, its niceness and its loans: a function that changes one
 * of these takes the task out first, and puts it back afterwards.
 *
 *	schedule(reason):	charge -> (if ready: enqueue) -> pick -> switch_to -> the next task
 *
 * The idle task is in no queue and in no list: it runs when the queue is empty. schedule() is
 * called with interrupts disabled, by tasks only, and never by an interrupt handler: a handler sets
 * WORK_SCHEDULE (kernel/task/sched_preempt.c).
 */
#include "kernel/task/sched.h"

#include "kernel/lib/errno.h"
#include "kernel/cpu/interrupts.h"
#include "kernel/lib/string.h"
#include "kernel/task/switch.h"
#include "kernel/task/task_make.h"
#include "kernel/task/time.h"

const struct sched_class *sched_class = &sched_round_robin;
struct sched_trace sched_trace;

static struct task idle = { .name = "idle", .schedule.donated = PRIORITY_NONE };
static uint32_t queued; /* tasks that wait for the processor */

/* The class puts it in its place; `queued` counts for all classes. */
static void enqueue(struct task *task, enum sched_reason reason)
{
	task->schedule.is_queued = true;
	queued++;
	sched_class->enqueue(task, reason);
}

static void dequeue(struct task *task)
{
	task->schedule.is_queued = false;
	queued--;
	list_remove(&task->schedule.in_queue);
}

/* The task that goes next, out of the queue. The idle task never competes: it runs when no other
 * task can. */
static struct task *pick(void)
{
	struct task *task = queued > 0 ? sched_class->pick() : NULL;

	if (!task)
		return &idle;
	task->schedule.is_queued = false;
	queued--;
	return task;
}

/* The task that runs pays for the time since it was last charged. */
static void charge(struct task *task)
{
	uint64_t now = time_stamp(), cycles = now - task->schedule.started;

	task->schedule.started = now;
	task->schedule.total += cycles;
	if (task != &idle)
		sched_class->charge(task, cycles);
}

/* Into a ring that the host can read: gdb's sched-trace, and the tests. */
static void record(const struct task *from, const struct task *to, enum sched_reason reason)
{
	sched_trace.ring[sched_trace.total++ % SCHED_RECORDS] = (struct sched_record){
		.stamp = to->schedule.started,
		.from = from->pid,
		.to = to->pid,
		.reason = reason,
	};
}

/* EXERCISE 4.1 (threads, part 3): schedule(reason). Interrupts are disabled, and stay so.

   Charges the current task, puts it back into the queue if it is still TASK_READY, and gives the
   processor to the task that pick() returns. A request for a switch (WORK_SCHEDULE) is met by
   this. The next task's time (started) begins where the charge of the previous one ended.

   If the next task is another one: the switch goes into the record and is counted (`switches` of
   the task that gets the processor, `preemptions` of the one that was pre-empted); `current` and
   the processor's state (task_load) are set before switch_to. When switch_to returns, this task
   runs again, perhaps much later, and task_switched() must be called before anything else.

   Pitfalls: the idle task is never in the queue. If the next task is the same, there is no
   switch and no record. `current` changes in the middle of this function. */
/* SOLUTION 4.1 { */
void schedule(enum sched_reason reason)
{
	struct task *before = current;

	trap_return_work &= ~WORK_SCHEDULE;
	charge(before);
	if (before->life == TASK_READY && before != &idle)
		enqueue(before, reason);
	struct task *next = pick();

	next->schedule.started = before->schedule.started;
	if (next == before)
		return;
	record(before, next, reason);
	next->switches++;
	before->preemptions += reason == SCHED_PREEMPTED;
	current = next;
	task_load(next);
	switch_to(before, next);
	task_switched();
}
/* } SOLUTION 4.1 */

/* With an empty queue no turn ends: there is no task to run instead. */
bool sched_turn_is_over(void)
{
	charge(current);
	return current != &idle && sched_class->tick(current) && queued > 0;
}

void yield(void)
{
	if (queued == 0)
		return;
	bool enabled = interrupts_disable();

	schedule(SCHED_YIELDED);
	interrupts_restore(enabled);
}

/* Returns when another task has made this one ready, and it has got the processor. */
void sched_sleep(enum task_life life)
{
	current->life = life;
	schedule(life == TASK_STOPPED ? SCHED_STOPS : SCHED_SLEEPS);
}

/* Makes a task runnable that was not. The current one may still be running, on its way to sleep: it
 * keeps the processor. */
static void make_ready(struct task *task, enum sched_reason reason)
{
	task->life = TASK_READY;
	if (task == current)
		return;
	enqueue(task, reason);
	if (current == &idle || sched_class->preempts(task, current))
		trap_return_work |= WORK_SCHEDULE;
}

/* From here on the task may run at any time. */
void sched_begin(struct task *task)
{
	bool enabled = interrupts_disable();

	sched_class->join(task);
	make_ready(task, SCHED_NEW);
	interrupts_restore(enabled);
}

/* A task that is ready, stopped or a zombie is left alone, so one wake-up too many does no harm. */
void sched_wake(struct task *task)
{
	bool enabled = interrupts_disable();

	if (task->life == TASK_SLEEPING || task->life == TASK_BLOCKED)
		make_ready(task, SCHED_WOKEN);
	interrupts_restore(enabled);
}

void sched_continue(struct task *task)
{
	bool enabled = interrupts_disable();

	if (task->life == TASK_STOPPED)
		make_ready(task, SCHED_WOKEN);
	interrupts_restore(enabled);
}

/* While the task is in no queue, because this may move its place there. */
static void set_priority(struct task *task, int nice, int donated)
{
	bool enabled = interrupts_disable(), was_queued = task->schedule.is_queued;

	if (was_queued)
		dequeue(task);
	task->schedule.nice = nice;
	task->schedule.donated = donated;
	if (was_queued)
		enqueue(task, SCHED_WOKEN);
	interrupts_restore(enabled);
}

void sched_set_nice(struct task *task, int nice)
{
	set_priority(task, nice, task->schedule.donated);
}

void sched_donate(struct task *task, int priority)
{
	if (task->schedule.donated != priority)
		set_priority(task, task->schedule.nice, priority);
}

static const struct sched_class *find_class(const char *name)
{
	static const struct sched_class *const classes[] = { &sched_round_robin, &sched_mlfq,
							     &sched_fair };

	for (unsigned i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (strcmp(classes[i]->name, name) == 0)
			return classes[i];
	return NULL;
}

/* Every task that waits moves to the new class's queue. Loans mean nothing there. */
int sched_use(const char *name)
{
	const struct sched_class *class = find_class(name);

	if (!class)
		return -EINVAL;
	bool enabled = interrupts_disable();

	sched_class = class;
	for (struct task *task = task_next(NULL); task; task = task_next(task)) {
		if (task->schedule.is_queued)
			list_remove(&task->schedule.in_queue);
		task->schedule.donated = PRIORITY_NONE; /* it was the other class's measure */
		class->join(task);
		if (task->schedule.is_queued)
			class->enqueue(task, SCHED_NEW);
	}
	interrupts_restore(enabled);
	return 0;
}

/* The boot code becomes the idle task; it cannot be pre-empted until sched_idle. */
void sched_initialize(void)
{
	idle.schedule.preempt_count = 1;
	idle.schedule.started = time_stamp();
	current = &idle;
}
