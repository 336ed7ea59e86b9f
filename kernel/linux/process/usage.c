/*
 * The use that programs make of the machine (processor time, page faults, blocks of disks, memory)
 * and the system calls that tell it. What a task has used that has ended is counted with its
 * program's leader; what a child has used, with its parent once it was waited for.
 */
#include "kernel/linux/process/usage.h"

#include <stddef.h>

#include "kernel/cpu/memory_layout.h"
#include "kernel/lib/divide.h"
#include "kernel/lib/errno.h"
#include "kernel/process/family.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/task.h"
#include "kernel/task/time.h"
#include "mm/space_map.h"
#include "mm/user_copy.h"

#define NS_PER_TICK (NANOSECONDS_PER_SECOND / TICKS_PER_SECOND)

/* ---- sums ---- */

static void add(struct task_counts *sum, const struct task_counts *more)
{
	sum->minor_faults += more->minor_faults;
	sum->major_faults += more->major_faults;
	sum->blocks_in += more->blocks_in;
	sum->blocks_out += more->blocks_out;
	sum->waits += more->waits;
	sum->preemptions += more->preemptions;
	if (sum->most_pages < more->most_pages)
		sum->most_pages = more->most_pages;
}

static void add_task(struct task_counts *sum, const struct task *task)
{
	add(sum, &task->counts);
	sum->waits += task->switches - task->preemptions;
	sum->preemptions += task->preemptions;
}

static void add_memory(struct task_counts *sum, const struct space *space)
{
	uint32_t pages = space_most_size(space) / PAGE_SIZE;

	if (sum->most_pages < pages)
		sum->most_pages = pages;
}

/* The task that runs was charged at the last tick or switch. */
void use_add(struct use *sum, const struct task *task)
{
	sum->cycles += task->schedule.total;
	if (task == current)
		sum->cycles += time_stamp() - task->schedule.started;
	sum->user_ticks += task->user_ticks;
	sum->system_ticks += task->system_ticks;
	add_task(&sum->counts, task);
}

/* What a program's tasks have used, also those that have ended: their ticks are the leader's. */
struct use use_of_program(const struct process *leader)
{
	struct use use = { 0 };

	if (use_of_ended)
		use = *use_of_ended(leader);
	use.user_ticks = use.system_ticks = 0;
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
		use.user_ticks -= use_of_ended(task->process)->user_ticks;
		use.system_ticks -= use_of_ended(task->process)->system_ticks;
	}
	return use;
}

void usage_end(const struct use *ended)
{
	struct task_counts *sum = &current->process->children_counts;

	add(sum, &ended->counts);
	add_task(sum, current);
	add_memory(sum, current->space);
}

void usage_fetched(const struct wait_news *news)
{
	struct process *own = current->process, *leader = own->leader;

	if ((news->status & 0xff) == WAIT_STATUS_STOPPED || news->status == WAIT_STATUS_GOES_ON)
		return;
	add(&leader->children_counts, &news->counts);
	if (own == leader)
		return;
	leader->children_user_ticks += own->children_user_ticks;
	leader->children_system_ticks += own->children_system_ticks;
	own->children_user_ticks = own->children_system_ticks = 0;
}

/* ---- as programs see it ---- */

static struct linux_timeval timeval_of_ticks(uint32_t ticks)
{
	return (struct linux_timeval){ ticks / TICKS_PER_SECOND,
				       ticks % TICKS_PER_SECOND * (NS_PER_TICK / 1000) };
}

struct linux_usage usage_of(uint32_t user, uint32_t system, const struct task_counts *counts)
{
	return (struct linux_usage){
		.user = timeval_of_ticks(user),
		.system = timeval_of_ticks(system),
		.largest_size = counts->most_pages * (PAGE_SIZE / 1024),
		.minor_faults = counts->minor_faults,
		.major_faults = counts->major_faults,
		.blocks_in = counts->blocks_in,
		.blocks_out = counts->blocks_out,
		.voluntary_switches = counts->waits,
		.involuntary_switches = counts->preemptions,
	};
}

static int sys_getrusage(struct trap_frame *frame)
{
	const struct process *leader = current->process->leader;
	struct linux_usage usage;

	if (frame->ebx == USAGE_SELF || frame->ebx == USAGE_THREAD) {
		struct use use =
		    frame->ebx == USAGE_SELF ? use_of_program(leader) : use_of_task(current);

		add_memory(&use.counts, current->space);
		usage = usage_of(use.user_ticks, use.system_ticks, &use.counts);
	} else if ((int32_t)frame->ebx == USAGE_CHILDREN) {
		usage = usage_of(leader->children_user_ticks, leader->children_system_ticks,
				 &leader->children_counts);
	} else {
		return -EINVAL;
	}
	return give(frame->ecx, &usage, sizeof(usage));
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 77, "getrusage", "dp", sys_getrusage },
};
