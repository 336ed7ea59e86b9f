/*
 * The use that programs make of the machine (processor time, page faults, blocks of disks, memory)
 * and the system calls that tell it. What a task has used that has ended is counted with its
 * program's leader; what a child has used, with its parent once it was waited for.
 */
#include "kernel/linux/syscall_usage.h"

#include <stddef.h>

#include "kernel/cpu/memory_layout.h"
#include "kernel/lib/divide.h"
#include "kernel/lib/errno.h"
#include "kernel/process/process.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/task.h"
#include "kernel/task/time.h"
#include "mm/space_map.h"
#include "mm/user_copy.h"

#define NS_PER_TICK (NANOSECONDS_PER_SECOND / TICKS_PER_SECOND)

/* ---- processor time ---- */

struct use (*use_of_ended)(const struct process *leader);

/* The task that runs was charged at the last tick or switch. */
void use_add(struct use *sum, const struct task *task)
{
	sum->cycles += task->schedule.total;
	if (task == current)
		sum->cycles += time_stamp() - task->schedule.started;
	sum->user_ticks += task->user_ticks;
	sum->system_ticks += task->system_ticks;
}

/* What a program's tasks have used, also those that have ended: their ticks are the leader's. */
struct use use_of_program(const struct process *leader)
{
	struct use use = { use_of_ended ? use_of_ended(leader).cycles : 0, 0, 0 };

	for (const struct task *task = task_next(NULL); task; task = task_next(task))
		if (task->process && task->process->leader == leader)
			use_add(&use, task);
	return use;
}

/* Of a task alone. */
struct use use_of_task(const struct task *task)
{
	struct use use = { 0 };

	use_add(&use, task);
	if (use_of_ended && task->process->leader == task->process) {
		use.user_ticks -= use_of_ended(task->process).user_ticks;
		use.system_ticks -= use_of_ended(task->process).system_ticks;
	}
	return use;
}

/* ---- what is counted ---- */

static struct linux_timeval timeval_of_ticks(uint32_t ticks)
{
	return (struct linux_timeval){ ticks / TICKS_PER_SECOND,
				       ticks % TICKS_PER_SECOND * (NS_PER_TICK / 1000) };
}

void counts_add(uint32_t *sum, const uint32_t *more)
{
	uint32_t most = more[MOST_PAGES] > sum[MOST_PAGES] ? more[MOST_PAGES] : sum[MOST_PAGES];

	for (uint32_t i = 0; i < COUNTS; i++)
		sum[i] += more[i];
	sum[MOST_PAGES] = most;
}

void counts_add_task(uint32_t *sum, const struct task *task)
{
	counts_add(sum, task->counts);
	sum[WAITS] += task->switches - task->preemptions;
	sum[PREEMPTED] += task->preemptions;
}

struct linux_usage usage_of(uint32_t user, uint32_t system, const uint32_t *counts)
{
	return (struct linux_usage){
		.user = timeval_of_ticks(user),
		.system = timeval_of_ticks(system),
		.largest_size = counts[MOST_PAGES] * (PAGE_SIZE / 1024),
		.minor_faults = counts[MINOR_FAULTS],
		.major_faults = counts[MAJOR_FAULTS],
		.blocks_in = counts[BLOCKS_IN],
		.blocks_out = counts[BLOCKS_OUT],
		.voluntary_switches = counts[WAITS],
		.involuntary_switches = counts[PREEMPTED],
	};
}

/* Ticks of the program, and of its children; returns the ticks since boot. */
static int sys_times(struct trap_frame *frame)
{
	const struct process *leader = current->process->leader;
	const struct use use = use_of_program(leader);
	const struct linux_times times = { use.user_ticks, use.system_ticks,
					   leader->children_user_ticks,
					   leader->children_system_ticks };

	if (frame->ebx && give(frame->ebx, &times, sizeof(times)) != 0)
		return -EFAULT;
	return (uint32_t)divide64(time_ns(), NS_PER_TICK, NULL) & INT32_MAX;
}

static int sys_getrusage(struct trap_frame *frame)
{
	struct process *leader = current->process->leader;
	bool is_thread = frame->ebx == USAGE_THREAD;
	struct linux_usage usage;

	if (frame->ebx == USAGE_SELF || is_thread) {
		const struct use use = is_thread ? use_of_task(current) : use_of_program(leader);
		uint32_t counts[COUNTS] = { [MOST_PAGES] =
						space_resident_size(current->space) / PAGE_SIZE };

		for (const struct task *task = task_next(NULL); task; task = task_next(task))
			if (task == current ||
			    (!is_thread && task->process && task->process->leader == leader))
				counts_add_task(counts, task);
		usage = usage_of(use.user_ticks, use.system_ticks, counts);
	} else if ((int32_t)frame->ebx == USAGE_CHILDREN) {
		usage = usage_of(leader->children_user_ticks, leader->children_system_ticks,
				 leader->children_counts);
	} else {
		return -EINVAL;
	}
	return give(frame->ecx, &usage, sizeof(usage));
}

static const struct syscall calls[] SYSCALL_TABLE_REPLACING = {
	{ 43, "times", "p", sys_times },
	{ 77, "getrusage", "dp", sys_getrusage },
};
