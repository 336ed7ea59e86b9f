/* Round robin under another name. */
#include "kernel/task/sched.h"

static void join(struct task *task)
{
	sched_round_robin.join(task);
}

static void enqueue(struct task *task, enum sched_reason reason)
{
	sched_round_robin.enqueue(task, reason);
}

static struct task *pick(void)
{
	return sched_round_robin.pick();
}

static void charge(struct task *task, uint64_t cycles)
{
	sched_round_robin.charge(task, cycles);
}

static bool tick(struct task *task)
{
	return sched_round_robin.tick(task);
}

static bool preempts(const struct task *woken, const struct task *running)
{
	return sched_round_robin.preempts(woken, running);
}

static int priority(const struct task *task)
{
	return sched_round_robin.priority(task);
}

const struct sched_class sched_fair = {
	.name = "fair",
	.join = join,
	.enqueue = enqueue,
	.pick = pick,
	.charge = charge,
	.tick = tick,
	.preempts = preempts,
	.priority = priority,
};
