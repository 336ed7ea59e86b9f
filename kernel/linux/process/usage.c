/*
 * The use that programs make of the machine (processor time, page faults, blocks of disks, memory)
 * and the system calls that tell it. What a task has used that has ended is counted with its
 * program's leader; what a child has used, with its parent once it was waited for.
 *
 *	task		task->counts, ticks, schedule.total	counted where it happens
 *	program		use_of_program: its tasks, and those that have ended (use_of_ended)
 *	children	leader->children_counts, children_..._ticks: usage_fetched
 *
 * getrusage(2), wait4(2). Nothing here sleeps, except for the copy to the program.
 */
#include "kernel/linux/process/usage.h"

#include "kernel/linux/call.h"
#include "kernel/task/time.h"
#include "mm/space_map.h"

#define NS_PER_TICK (NANOSECONDS_PER_SECOND / TICKS_PER_SECOND)

/* ---- sums ---- */

/* All of them are sums, except the most pages at a time. */
static void add_counts(struct task_counts *sum, const struct task_counts *more)
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

/* The kernel counts switches of a task by whether it was pre-empted; the rest were waits. */
static void add_task(struct task_counts *sum, const struct task *task)
{
	add_counts(sum, &task->counts);
	sum->waits += task->switches - task->preemptions;
	sum->preemptions += task->preemptions;
}

/* The most that a program has had in memory at a time. */
static void add_memory(struct task_counts *sum, const struct space *space)
{
	uint32_t pages = space_sizes(space).most / PAGE_SIZE;

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

/* What a program's tasks have used, also those that have ended. Cycles and counts of these are in
 * use_of_ended; their ticks were added to the leader's own, which times(2) shows in the core. */
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

/* Of a child that nobody waits for it is lost, as on Linux. */
void usage_end(const struct use *ended)
{
	struct task_counts *sum = &current->process->children_counts;

	add_counts(sum, &ended->counts);
	add_task(sum, current);
	add_memory(sum, current->space);
}

/* Nothing is counted of a child that has stopped or goes on. What process_wait has added to a
 * thread belongs to its program. */
void usage_fetched(const struct wait_news *news)
{
	struct process *process = current->process, *leader = process->leader;

	if ((news->status & 0xff) == WAIT_STATUS_STOPPED || news->status == WAIT_STATUS_GOES_ON)
		return;
	add_counts(&leader->children_counts, &news->counts);
	if (process == leader)
		return;
	leader->children_user_ticks += process->children_user_ticks;
	leader->children_system_ticks += process->children_system_ticks;
	process->children_user_ticks = process->children_system_ticks = 0;
}

/* ---- as programs see it ---- */

static struct linux_timeval timeval_of_ticks(uint32_t ticks)
{
	return (struct linux_timeval){ ticks / TICKS_PER_SECOND,
				       ticks % TICKS_PER_SECOND * (NS_PER_TICK / 1000) };
}

/* Linux has more fields, which it does not fill in either. */
static int give_usage(uint32_t address, uint32_t user, uint32_t system,
		      const struct task_counts *counts)
{
	const struct linux_usage usage = {
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

	return give(address, &usage, sizeof(usage));
}

int wait_give_usage(uint32_t address, const struct wait_news *news)
{
	return address ? give_usage(address, news->user_ticks, news->system_ticks, &news->counts)
		       : 0;
}

SYSCALL_DEFINE(77, sys_getrusage, "dp")
{
	const struct process *leader = current->process->leader;
	struct use use = { .user_ticks = leader->children_user_ticks,
			   .system_ticks = leader->children_system_ticks,
			   .counts = leader->children_counts };

	if (frame->ebx == USAGE_SELF || frame->ebx == USAGE_THREAD) {
		use = frame->ebx == USAGE_SELF ? use_of_program(leader) : use_of_task(current);
		add_memory(&use.counts, current->space);
	} else if ((int32_t)frame->ebx != USAGE_CHILDREN) {
		return -EINVAL;
	}
	return give_usage(frame->ecx, use.user_ticks, use.system_ticks, &use.counts);
}
