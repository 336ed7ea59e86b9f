/* System calls about tasks: families, groups, and the scheduler. */
#include <stdbool.h>
#include <stddef.h>

#include "kernel/abi/resource.h"
#include "kernel/abi/signal_handler.h"
#include "kernel/abi/waitid.h"
#include "kernel/lib/errno.h"
#include "kernel/task/sched.h"
#include "kernel/syscall/syscall.h"
#include "kernel/linux/process/usage.h"
#include "kernel/linux/time/user_time64.h"
#include "kernel/task/sched_class.h"
#include "kernel/task/time.h"
#include "kernel/process/family.h"
#include "mm/user_copy.h"

#define NICE_LEAST	(-20)
#define NICE_MOST	19
#define PRIORITY_OFFSET 20 /* getpriority returns 20 - nice: never negative */
#define PRIORITY_MOST	99 /* of SCHED_RR */
#define POLICY_FIFO	1u
#define POLICY_RR	2u
#define POLICY_BATCH	3u
#define POLICY_UNUSED	4u
#define POLICY_IDLE	5u
#define POLICY_LAST	6u
#define CPU_MASK_SIZE	4

/* ioprio_set(2): whose it is (a process's, a group's, a user's), and a priority's two parts. */
#define IO_KINDS       3u
#define IO_CLASS_SHIFT 13
#define IO_CLASS_IDLE  3u
#define IO_LEVELS      0x1fffu
#define IO_LEVEL_LAST  7u

/* ---- families ---- */

int wait_give_usage(uint32_t address, const struct wait_news *news)
{
	if (!address)
		return 0;
	const struct linux_usage usage =
	    usage_of(news->user_ticks, news->system_ticks, &news->counts);

	return give(address, &usage, sizeof(usage));
}

static bool is_wanted(const struct process *child, uint32_t options)
{
	uint32_t news =
	    (child->has_stopped ? WUNTRACED : 0) | (child->has_continued ? WCONTINUED : 0);

	return (child->task->life == TASK_ZOMBIE ? WEXITED : news) & options;
}

/* A child with news of the wanted kind; *error is -ECHILD when there is no such child at all. */
static struct process *find_wanted(int32_t which, uint32_t options, int32_t *error)
{
	*error = -ECHILD;
	for (struct process *child = process_next(NULL); child; child = process_next(child)) {
		bool meant = process_is_meant(child, which);

		if (meant && is_wanted(child, options))
			return child;
		*error = meant ? 0 : *error;
	}
	return NULL;
}

/* Looks whether there is news; process_wait takes it, unless it is to stay. */
static int look_id(int32_t which, uint32_t options, struct wait_news *news)
{
	int error;
	struct process *child = find_wanted(which, options, &error);

	if (!child)
		return error;
	bool has_stopped = child->has_stopped, has_continued = child->has_continued;

	if (!(options & WNOWAIT)) {
		int pid = process_wait(child->task->pid, WNOHANG | (options & WAIT_OPTIONS), news);

		usage_fetched(news);
		return pid;
	}
	child->has_continued = has_continued && child->task->life != TASK_ZOMBIE;
	process_fetch(child, news);
	child->has_stopped = has_stopped;
	child->has_continued = has_continued;
	return child->task->pid;
}

static int wait_id(int32_t which, uint32_t options, struct wait_news *news)
{
	const uint32_t kinds = WEXITED | WUNTRACED | WCONTINUED;
	int32_t pid;

	if (options & ~(WAIT_OPTIONS | WEXITED | WNOWAIT) || !(options & kinds))
		return -EINVAL;
	current->process->waits_for = options & WAIT_KINDS;
	int error = wait_event(&current->process->leader->children,
			       (pid = look_id(which, options, news)) != 0 || (options & WNOHANG));

	return error ? error : pid;
}

/* Linux's struct siginfo with a child's news. */
static int give_child(uint32_t address, int32_t pid, int32_t status)
{
	struct linux_signal_info info = { .signal = pid ? SIGCHLD : 0, .pid = pid };
	int32_t signal = status & 0x7f;

	if (pid) {
		info.code = status == WAIT_STATUS_GOES_ON   ? CLD_CONTINUED
			    : signal == 0		    ? CLD_EXITED
			    : signal == WAIT_STATUS_STOPPED ? CLD_STOPPED
							    : CLD_KILLED;
		info.status = info.code == CLD_CONTINUED ? SIGCONT
			      : info.code == CLD_KILLED	 ? signal
							 : status >> 8;
	}
	return give(address, &info, SIGNAL_INFO_CAUSE);
}

static int sys_waitid(struct trap_frame *frame)
{
	const int32_t which[] = { -1, frame->ecx, frame->ecx ? -frame->ecx : 0 };
	uint32_t type = frame->ebx;
	struct wait_news news = { 0 };

	if (type > 2 || (type == 1 && (int32_t)frame->ecx <= 0) || (int32_t)frame->ecx < 0)
		return -EINVAL;
	int32_t pid = wait_id(which[type], frame->esi, &news);

	if (pid < 0)
		return pid;
	if (pid > 0 && frame->edi && wait_give_usage(frame->edi, &news) != 0)
		return -EFAULT;
	return frame->edx ? give_child(frame->edx, pid, news.status) : 0;
}

/* ---- groups and sessions ---- */

static int sys_getpgid(struct trap_frame *frame)
{
	const struct process *process = process_of_call(frame->ebx);

	return process ? process->pgrp : -ESRCH;
}

static int sys_getsid(struct trap_frame *frame)
{
	const struct process *process = process_of_call(frame->ebx);

	return process ? process->session : -ESRCH;
}

/* ---- the scheduler ---- */

static int clamp_nice(int64_t nice)
{
	return nice < NICE_LEAST ? NICE_LEAST : nice > NICE_MOST ? NICE_MOST : (int)nice;
}

static int sys_nice(struct trap_frame *frame)
{
	sched_set_nice(current, clamp_nice((int64_t)current->schedule.nice + (int32_t)frame->ebx));
	return 0;
}

static bool is_program(const struct task *task)
{
	return task->process && task->space;
}

/* Is the task meant by setpriority's and getpriority's two arguments? There is one user. */
static bool has_priority(const struct task *task, uint32_t which, int32_t who)
{
	switch (which) {
	case PRIO_PROCESS:
		return task->pid == (who ? who : current->pid);
	case PRIO_PGRP:
		return task->process->pgrp == (who ? who : current->process->pgrp);
	default:
		return who == 0;
	}
}

static int sys_setpriority(struct trap_frame *frame)
{
	int result = -ESRCH;

	if (frame->ebx > PRIO_USER)
		return -EINVAL;
	for (struct task *task = task_next(NULL); task; task = task_next(task)) {
		if (!is_program(task) || !has_priority(task, frame->ebx, frame->ecx))
			continue;
		sched_set_nice(task, clamp_nice((int32_t)frame->edx));
		result = 0;
	}
	return result;
}

static int sys_getpriority(struct trap_frame *frame)
{
	int result = -ESRCH;

	if (frame->ebx > PRIO_USER)
		return -EINVAL;
	for (const struct task *task = task_next(NULL); task; task = task_next(task)) {
		int32_t priority = PRIORITY_OFFSET - task->schedule.nice;

		if (is_program(task) && has_priority(task, frame->ebx, frame->ecx) &&
		    priority > result)
			result = priority;
	}
	return result;
}

/* What a program has asked for last. All tasks are under one class: a task that changes its own
 * policy changes that of all. SCHED_OTHER is the class that the machine had before. */
static struct {
	const struct sched_class *usual;
	uint32_t policy, priority;
} chosen;

static int check_pid(int32_t pid)
{
	return pid < 0 ? -EINVAL : process_of_call(pid) ? 0 : -ESRCH;
}

static int sys_sched_getscheduler(struct trap_frame *frame)
{
	int error = check_pid(frame->ebx);

	return error ? error : (int)chosen.policy;
}

static bool is_valid(uint32_t policy, uint32_t priority)
{
	bool has_priority = policy == POLICY_FIFO || policy == POLICY_RR;

	return policy <= POLICY_IDLE && policy != POLICY_UNUSED &&
	       (has_priority ? priority - 1 < PRIORITY_MOST : priority == 0);
}

static const struct sched_class *class_of(uint32_t policy)
{
	if (policy == POLICY_FIFO || policy == POLICY_RR)
		return &sched_round_robin;
	return policy == POLICY_BATCH ? &sched_mlfq : chosen.usual;
}

static int sys_sched_setscheduler(struct trap_frame *frame)
{
	uint32_t priority;
	int error = frame->edx && (int32_t)frame->ecx >= 0 ? check_pid(frame->ebx) : -EINVAL;

	if (error)
		return error;
	if (copy_from_user(&priority, frame->edx, sizeof(priority)) != 0)
		return -EFAULT;
	if (!is_valid(frame->ecx, priority))
		return -EINVAL;
	if (!chosen.usual)
		chosen.usual = sched_class;
	chosen.policy = frame->ecx;
	chosen.priority = priority;
	return sched_use(class_of(frame->ecx)->name);
}

/* Priorities are accepted and change nothing. Linux's SCHED_FIFO and SCHED_RR have them, its other
 * policies do not. */
static int priority_of(uint32_t policy, int32_t of_real_time)
{
	if (policy > POLICY_LAST || policy == POLICY_UNUSED)
		return -EINVAL;
	return policy == POLICY_FIFO || policy == POLICY_RR ? of_real_time : 0;
}

CALL(sys_sched_get_priority_max, priority_of(frame->ebx, PRIORITY_MOST))
CALL(sys_sched_get_priority_min, priority_of(frame->ebx, 1))

static int sys_sched_getparam(struct trap_frame *frame)
{
	int error = frame->ecx ? check_pid(frame->ebx) : -EINVAL;

	return error ? error : give(frame->ecx, &chosen.priority, sizeof(chosen.priority));
}

static int sys_sched_setparam(struct trap_frame *frame)
{
	uint32_t priority;
	int error = frame->ecx ? check_pid(frame->ebx) : -EINVAL;

	if (error)
		return error;
	if (copy_from_user(&priority, frame->ecx, sizeof(priority)) != 0)
		return -EFAULT;
	if (!is_valid(chosen.policy, priority))
		return -EINVAL;
	chosen.priority = priority;
	return 0;
}

/* A turn under the class in use; Linux's SCHED_FIFO has none. */
static int give_turn(const struct trap_frame *frame, bool wide)
{
	const uint64_t tick = NANOSECONDS_PER_SECOND / TICKS_PER_SECOND;
	const uint64_t ns = chosen.policy == POLICY_FIFO ? 0 : sched_quantum * tick;
	const struct linux_timespec64 turn64 = timespec64_of(ns);
	const struct linux_timespec turn = timespec_of(ns);

	int error = check_pid(frame->ebx);

	if (error)
		return error;
	return wide ? give(frame->ecx, &turn64, sizeof(turn64))
		    : give(frame->ecx, &turn, sizeof(turn));
}

CALL(sys_sched_rr_get_interval, give_turn(frame, false))
CALL(sys_sched_rr_get_interval64, give_turn(frame, true))

/* Priorities of disk requests are accepted, too, and change nothing. */
static int sys_ioprio_set(struct trap_frame *frame)
{
	uint32_t class = frame->edx >> IO_CLASS_SHIFT, level = frame->edx & IO_LEVELS;

	if (frame->ebx - 1 >= IO_KINDS || class > IO_CLASS_IDLE || level > IO_LEVEL_LAST)
		return -EINVAL;
	return frame->ebx > 1 || process_of_call(frame->ecx) ? 0 : -ESRCH;
}

static int sys_ioprio_get(struct trap_frame *frame)
{
	if (frame->ebx - 1 >= IO_KINDS)
		return -EINVAL;
	return frame->ebx > 1 || process_of_call(frame->ecx) ? 0 : -ESRCH;
}

static int sys_sched_getaffinity(struct trap_frame *frame)
{
	const uint32_t first_processor = 1;

	if (!process_of_call(frame->ebx))
		return -ESRCH;
	if (frame->ecx < CPU_MASK_SIZE)
		return -EINVAL;
	int error = give(frame->edx, &first_processor, CPU_MASK_SIZE);

	return error ? error : CPU_MASK_SIZE;
}

/* There is one processor to be on. */
static int sys_sched_setaffinity(struct trap_frame *frame)
{
	uint32_t mask = 0, size = frame->ecx < sizeof(mask) ? frame->ecx : sizeof(mask);

	if (!process_of_call(frame->ebx))
		return -ESRCH;
	if (copy_from_user(&mask, frame->edx, size) != 0)
		return -EFAULT;
	return mask & 1 ? 0 : -EINVAL;
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 34, "nice", "d", sys_nice },
	{ 96, "getpriority", "dd", sys_getpriority },
	{ 97, "setpriority", "ddd", sys_setpriority },
	{ 132, "getpgid", "d", sys_getpgid },
	{ 147, "getsid", "d", sys_getsid },
	{ 154, "sched_setparam", "dp", sys_sched_setparam },
	{ 155, "sched_getparam", "dp", sys_sched_getparam },
	{ 156, "sched_setscheduler", "ddp", sys_sched_setscheduler },
	{ 157, "sched_getscheduler", "d", sys_sched_getscheduler },
	{ 159, "sched_get_priority_max", "d", sys_sched_get_priority_max },
	{ 160, "sched_get_priority_min", "d", sys_sched_get_priority_min },
	{ 161, "sched_rr_get_interval", "dp", sys_sched_rr_get_interval },
	{ 241, "sched_setaffinity", "ddp", sys_sched_setaffinity },
	{ 242, "sched_getaffinity", "ddp", sys_sched_getaffinity },
	{ 284, "waitid", "ddpxp", sys_waitid },
	{ 289, "ioprio_set", "ddx", sys_ioprio_set },
	{ 290, "ioprio_get", "dd", sys_ioprio_get },
	{ 423, "sched_rr_get_interval_time64", "dp", sys_sched_rr_get_interval64 },
};
