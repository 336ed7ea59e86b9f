/* The scheduler: what all its classes have in common. */
#include "kernel/sched.h"

#include <stddef.h>

#include "kernel/errno.h"
#include "kernel/interrupts.h"
#include "kernel/panic.h"
#include "kernel/string.h"
#include "kernel/task_switch.h"
#include "kernel/time.h"
#include "kernel/timer.h"
#include "kernel/trap.h"

const struct sched_class *sched_class = &sched_round_robin;
uint32_t sched_quantum = 2;
struct sched_trace sched_trace;

static struct task idle = { .name = "idle", .schedule.donated = URGENCY_NONE };
static uint32_t queued; /* tasks that wait for the processor */
static void (*deliver_signals)(struct trap_frame *frame);

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
	sched_class->dequeue(task);
}

/* The task that goes next, out of the queue. The idle task competes with nobody: it runs when there
 * is no other. */
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
	uint64_t now = time_stamp(), stamps = now - task->schedule.started;

	task->schedule.started = now;
	task->schedule.total += stamps;
	if (task != &idle)
		sched_class->charge(task, stamps);
}

static void record(const struct task *from, const struct task *to, enum sched_reason reason)
{
	sched_trace.ring[sched_trace.total++ % SCHED_RECORDS] = (struct sched_record){
		.stamp = to->schedule.started,
		.from = from->pid,
		.to = to->pid,
		.reason = reason,
	};
}

/* EXERCISE 4.2 (pre-emption, part 1 of 2): part 2 is in kernel/sched_round_robin.c.
   1. schedule: charge the task that runs. If it is still TASK_READY, it gets back into the queue;
   the idle task never does. Pick the next one; its time starts now. If it is the same one, there is
   nothing to switch. Otherwise record it, count it, set current, task_load(next), switch_to, and, on
   the other side, task_switched().
   2. tick: count the tick for the task, in ring 3 or in the kernel; let the timers expire; charge
   the task, and ask the class whether its turn is over. Only if somebody waits, ask for a change:
   WORK_SCHEDULE. Do not change here: the interrupt is not done yet.
   3. may_preempt: code of ring 3 always. The kernel only in a thread of its own (it has no space),
   whose preempt_count is 0, and where interrupts were on.
   4. work: it gets the frame of every trap that goes back while trap_return_work is not 0. */
/* SOLUTION 4.2 { */
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

static void tick(const struct trap_frame *frame)
{
	trap_return_work &= ~WORK_TICK;
	if ((frame->cs & 3) == 3)
		current->user_ticks++;
	else
		current->system_ticks++;
	timers_expire(time_ns());
	charge(current);
	if (current != &idle && sched_class->tick(current) && queued > 0)
		trap_return_work |= WORK_SCHEDULE;
}

static bool is_preemptible(void)
{
	return !current->space && current->schedule.preempt_count == 0;
}

void task_before_user(struct trap_frame *frame)
{
	while (trap_return_work & (WORK_SCHEDULE | WORK_SIGNAL)) {
		if (trap_return_work & WORK_SCHEDULE)
			schedule(SCHED_PREEMPTED);
		else
			deliver_signals(frame);
	}
}

static void work(struct trap_frame *frame)
{
	if (trap_return_work & WORK_TICK)
		tick(frame);
	if ((frame->cs & 3) == 3)
		task_before_user(frame);
	else if ((trap_return_work & WORK_SCHEDULE) && is_preemptible() &&
		 (frame->eflags & EFLAGS_INTERRUPTS))
		schedule(SCHED_PREEMPTED);
}
/* } SOLUTION 4.2 */

void sched_tick(void)
{
	trap_return_work |= WORK_TICK;
}

void preempt_check(void)
{
	if (!(trap_return_work & WORK_SCHEDULE) || !is_preemptible())
		return;
	bool enabled = interrupts_disable();

	schedule(SCHED_PREEMPTED);
	interrupts_restore(enabled);
}

void preempt_enable(void)
{
	ASSERT(current->schedule.preempt_count > 0);
	current->schedule.preempt_count--;
	preempt_check();
}

void yield(void)
{
	if (queued == 0)
		return;
	bool enabled = interrupts_disable();

	schedule(SCHED_YIELDED);
	interrupts_restore(enabled);
}

void sched_sleep(enum task_life life)
{
	current->life = life;
	schedule(life == TASK_STOPPED ? SCHED_STOPS : SCHED_SLEEPS);
}

/* Lets a task compete that did not. */
static void make_ready(struct task *task, enum sched_reason reason)
{
	task->life = TASK_READY;
	if (task == current)
		return;
	enqueue(task, reason);
	if (current == &idle || sched_class->preempts(task, current))
		trap_return_work |= WORK_SCHEDULE;
}

void sched_begin(struct task *task)
{
	bool enabled = interrupts_disable();

	sched_class->join(task);
	make_ready(task, SCHED_NEW);
	interrupts_restore(enabled);
}

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

/* Runs the change while the task is in no queue, for it may move its place there. */
#define change_place(task, change)                                                                 \
	do {                                                                                       \
		bool enabled = interrupts_disable(), was_queued = (task)->schedule.is_queued;      \
                                                                                                   \
		if (was_queued)                                                                    \
			dequeue(task);                                                             \
		change;                                                                            \
		if (was_queued)                                                                    \
			enqueue(task, SCHED_WOKEN);                                                \
		interrupts_restore(enabled);                                                       \
	} while (0)

void sched_set_nice(struct task *task, int nice)
{
	change_place(task, task->schedule.nice = nice);
}

void sched_donate(struct task *task, int urgency)
{
	if (task->schedule.donated != urgency)
		change_place(task, task->schedule.donated = urgency);
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

int sched_use(const char *name)
{
	const struct sched_class *class = find_class(name);

	if (!class)
		return -EINVAL;
	bool enabled = interrupts_disable();

	for (struct task *task = task_next(NULL); task; task = task_next(task))
		if (task->schedule.is_queued)
			sched_class->dequeue(task);
	sched_class = class;
	for (struct task *task = task_next(NULL); task; task = task_next(task)) {
		class->join(task);
		if (task->schedule.is_queued)
			class->enqueue(task, SCHED_NEW);
	}
	interrupts_restore(enabled);
	return 0;
}

void sched_register_signals(void (*deliver)(struct trap_frame *frame))
{
	deliver_signals = deliver;
}

void sched_initialize(void)
{
	idle.schedule.preempt_count = 1;
	idle.schedule.started = time_stamp();
	current = &idle;
	trap_register_return(work);
}

void sched_idle(void)
{
	ASSERT(current == &idle);
	preempt_enable();
	for (;;)
		wait_for_interrupt();
}
