/*
 * System calls about tasks: waitid, groups, and the scheduler.
 *
 * The scheduler's calls are for programs that ask; what they set has little effect. All tasks are
 * under one class (kernel/task/sched_class.h), so a policy is that of all. Real-time priorities and
 * those of disk requests are kept, and change nothing.
 *
 * waitid(2), getpriority(2), sched_setscheduler(2), sched(7), ioprio_set(2). Only waitid sleeps,
 * apart from copies to and from the program.
 */
#include "kernel/abi/resource.h"
#include "kernel/abi/signal_handler.h"
#include "kernel/abi/waitid.h"
#include "kernel/linux/call.h"
#include "kernel/linux/time/user_time64.h"
#include "kernel/task/sched.h"
#include "kernel/task/time.h"

#define NICE_LEAST	(-20)
#define NICE_MOST	19
#define PRIORITY_OFFSET 20 /* getpriority returns 20 - nice: never negative */
#define POLICY_FIFO	1u
#define POLICIES	7u
#define CPU_MASK_SIZE	4

/* ioprio_set(2): whose it is (a process's, a group's, a user's), and a priority's two parts. */
#define IO_KINDS       3u
#define IO_CLASS_SHIFT 13
#define IO_CLASS_IDLE  3u
#define IO_LEVELS      0x1fffu
#define IO_LEVEL_LAST  7u

/* ---- waitid ---- */

/* A child has news when it ends, stops or goes on. waitpid and waitid fetch it; each piece of news
 * is told once, unless WNOWAIT leaves it there.
 *
 *	WEXITED		it has ended: a zombie, which is gone when it was fetched
 *	WUNTRACED	has_stopped: a signal has stopped it (waitid's WSTOPPED)
 *	WCONTINUED	has_continued: SIGCONT has
 *
 * Unlike process_wait (kernel/process/children.c), waitid may ask for stops without ends. */

/* Has the child news of a kind that the options ask for? If it has ended, they ask for that. */
static bool has_wanted_news(const struct process *child, uint32_t options)
{
	return child->task->life == TASK_ZOMBIE || (child->has_stopped && options & WUNTRACED) ||
	       (child->has_continued && options & WCONTINUED);
}

/* Fetches a child's news, unless they are to stay there. Returns its pid. */
static int take_news(struct process *child, uint32_t options, struct wait_news *news)
{
	bool has_stopped = child->has_stopped, has_continued = child->has_continued;
	int32_t pid = child->task->pid;

	if (!(options & WNOWAIT)) {
		process_wait(pid, WNOHANG | (options & WAIT_OPTIONS), news);
		usage_fetched(news);
		return pid;
	}
	child->has_continued = has_continued && child->task->life != TASK_ZOMBIE;
	process_fetch(child, news);
	child->has_stopped = has_stopped;
	child->has_continued = has_continued;
	return pid;
}

/* Looks for news of the wanted kinds: the child's pid, 0 if there are none yet, or -ECHILD if no
 * child can have any: one that has ended neither stops nor goes on. */
static int look_for_news(int32_t which, uint32_t options, struct wait_news *news)
{
	int result = -ECHILD;

	for (struct process *child = process_next(NULL); child; child = process_next(child)) {
		bool has_ended = child->task->life == TASK_ZOMBIE;

		if (!process_is_meant(child, which) || (has_ended && !(options & WEXITED)))
			continue;
		if (has_wanted_news(child, options))
			return take_news(child, options, news);
		result = 0;
	}
	return result;
}

static int wait_for_news(int32_t which, uint32_t options, struct wait_news *news)
{
	const uint32_t kinds = WEXITED | WUNTRACED | WCONTINUED;
	int32_t pid;

	if (options & ~(WAIT_OPTIONS | WEXITED | WNOWAIT) || !(options & kinds))
		return -EINVAL;
	current->process->waits_for = options & WAIT_KINDS;
	int error =
	    wait_event(&current->process->leader->children,
		       (pid = look_for_news(which, options, news)) != 0 || (options & WNOHANG));

	return error ? error : pid;
}

/* Linux's struct siginfo with a child's news. */
static int give_child_info(uint32_t address, int32_t pid, int32_t status)
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

/* P_ALL, P_PID and P_PGID, as waitpid's first argument. The usage is Linux's, not POSIX's. */
SYSCALL_DEFINE(284, sys_waitid, "ddpxp")
{
	const int32_t which[] = { -1, frame->ecx, frame->ecx ? -frame->ecx : 0 };
	uint32_t type = frame->ebx;
	struct wait_news news = { 0 };

	if (type > 2 || (type == 1 && (int32_t)frame->ecx <= 0) || (int32_t)frame->ecx < 0)
		return -EINVAL;
	int32_t pid = wait_for_news(which[type], frame->esi, &news);

	if (pid < 0)
		return pid;
	if (pid > 0 && wait_give_usage(frame->edi, &news) != 0)
		return -EFAULT;
	return frame->edx ? give_child_info(frame->edx, pid, news.status) : 0;
}

/* ---- groups and sessions ---- */

SYSCALL_PROCESS(132, sys_getpgid, "d", process->pgrp)
SYSCALL_PROCESS(147, sys_getsid, "d", process->session)

/* ---- nice ---- */

static int clamp_nice(int64_t nice)
{
	return nice < NICE_LEAST ? NICE_LEAST : nice > NICE_MOST ? NICE_MOST : (int)nice;
}

/* Linux's call returns 0; the library asks for the new value with getpriority. */
SYSCALL(34, sys_nice, "d",
	(sched_set_nice(current, clamp_nice((int64_t)current->schedule.nice + (int32_t)frame->ebx)),
	 0))

/* Is the task meant by setpriority's and getpriority's two arguments? There is one user. */
static bool has_priority(const struct task *task, uint32_t which, int32_t who)
{
	return which == PRIO_PROCESS ? task->pid == (who ?: current->pid)
	       : which == PRIO_PGRP  ? task->process->pgrp == (who ?: current->process->pgrp)
				     : who == 0;
}

/* Sets the nice value of all tasks that are meant, to *nice; or (NULL) finds the best of theirs.
 * Returns 0, or 20 - nice; -EINVAL, or -ESRCH when nobody is meant. */
static int each_priority(uint32_t which, int32_t who, const int32_t *nice)
{
	int result = -ESRCH;

	if (which > PRIO_USER)
		return -EINVAL;
	for (struct task *task = task_next(NULL); task; task = task_next(task)) {
		int priority = nice ? 0 : PRIORITY_OFFSET - task->schedule.nice;

		if (!task->process || !task->space || !has_priority(task, which, who))
			continue;
		if (nice)
			sched_set_nice(task, clamp_nice(*nice));
		result = priority > result ? priority : result;
	}
	return result;
}

SYSCALL(96, sys_getpriority, "dd", each_priority(frame->ebx, frame->ecx, NULL))
SYSCALL(97, sys_setpriority, "ddd",
	each_priority(frame->ebx, frame->ecx, (const int32_t *)&frame->edx))

/* ---- policies ---- */

/* The policies of sched(7), by their numbers: the highest real-time priority (the lowest is 1; 0:
 * there are none), and the class of the scheduler that each chooses. */
static const struct policy {
	enum { NO_POLICY, ONLY_KNOWN, CHOSEN } use;
	uint32_t most;
	const struct sched_class *class; /* NULL: the class that the machine had */
} policies[POLICIES] = {
	{ CHOSEN, 0, NULL },		    /* SCHED_OTHER */
	{ CHOSEN, 99, &sched_round_robin }, /* SCHED_FIFO */
	{ CHOSEN, 99, &sched_round_robin }, /* SCHED_RR */
	{ CHOSEN, 0, &sched_mlfq },	    /* SCHED_BATCH: who computes for long comes last */
	{ NO_POLICY, 0, NULL },
	{ CHOSEN, 0, NULL },	 /* SCHED_IDLE */
	{ ONLY_KNOWN, 0, NULL }, /* SCHED_DEADLINE */
};

/* What a program has asked for last: a task that changes its own policy changes that of all.
 * SCHED_OTHER is the class that the machine had before. */
static struct {
	const struct sched_class *usual;
	uint32_t policy, priority;
} chosen;

/* -EINVAL, also if the call's other arguments are wrong, comes before -ESRCH. */
static int check_pid(int32_t pid, bool others_are_valid)
{
	return pid < 0 || !others_are_valid ? -EINVAL : process_of_call(pid) ? 0 : -ESRCH;
}

/* Only SCHED_FIFO and SCHED_RR have priorities. */
static bool is_valid_priority(uint32_t number, uint32_t priority)
{
	const struct policy *policy = number < POLICIES ? &policies[number] : NULL;

	return policy && policy->use == CHOSEN &&
	       (policy->most ? priority - 1 < policy->most : priority == 0);
}

/* What both calls set: a policy, and the priority in a struct sched_param of the program. */
static int set_policy(int32_t pid, int32_t policy, uint32_t address)
{
	uint32_t priority;
	int error =
	    check_pid(pid, address && policy >= 0) ?: fetch(&priority, address, sizeof(priority));

	if (error || !is_valid_priority(policy, priority))
		return error ?: -EINVAL;
	if (!chosen.usual)
		chosen.usual = sched_class;
	chosen.policy = policy;
	chosen.priority = priority;
	return sched_use((policies[policy].class ?: chosen.usual)->name);
}

SYSCALL(156, sys_sched_setscheduler, "ddp", set_policy(frame->ebx, frame->ecx, frame->edx))
SYSCALL(154, sys_sched_setparam, "dp", set_policy(frame->ebx, chosen.policy, frame->ecx))
SYSCALL(157, sys_sched_getscheduler, "d", check_pid(frame->ebx, true) ?: (int)chosen.policy)
SYSCALL(155, sys_sched_getparam, "dp",
	check_pid(frame->ebx, frame->ecx)
	    ?: give(frame->ecx, &chosen.priority, sizeof(chosen.priority)))

/* The highest or the lowest that a policy has, or 0; -EINVAL if there is no such policy. */
static int priority_limit(uint32_t policy, bool highest)
{
	if (policy >= POLICIES || policies[policy].use == NO_POLICY)
		return -EINVAL;
	return highest ? policies[policy].most : policies[policy].most > 0;
}

SYSCALL(159, sys_sched_get_priority_max, "d", priority_limit(frame->ebx, true))
SYSCALL(160, sys_sched_get_priority_min, "d", priority_limit(frame->ebx, false))

/* The quantum of the class in use; Linux's SCHED_FIFO has none. */
SYSCALL_DEFINE(161, sys_sched_rr_get_interval, "dp")
{
	const uint64_t tick = NANOSECONDS_PER_SECOND / TICKS_PER_SECOND;
	const uint64_t ns = chosen.policy == POLICY_FIFO ? 0 : sched_quantum * tick;

	return check_pid(frame->ebx, true) ?: time_to_user(frame->ecx, format_of_call(frame), ns);
}
SYSCALL_ROW_OF(423, sys_sched_rr_get_interval_time64, "dp", sys_sched_rr_get_interval)

/* ---- priorities of disk requests; processors ---- */

static int check_io_target(uint32_t kind, int32_t who)
{
	if (kind - 1 >= IO_KINDS)
		return -EINVAL;
	return kind > 1 || process_of_call(who) ? 0 : -ESRCH;
}

SYSCALL(289, sys_ioprio_set, "ddx",
	frame->edx >> IO_CLASS_SHIFT > IO_CLASS_IDLE || (frame->edx & IO_LEVELS) > IO_LEVEL_LAST
	    ? -EINVAL
	    : check_io_target(frame->ebx, frame->ecx))
SYSCALL(290, sys_ioprio_get, "dd", check_io_target(frame->ebx, frame->ecx))

/* There is one processor to be on. Linux's call returns how many bytes of the mask it has. */
static int give_affinity(uint32_t to, uint32_t size)
{
	const uint32_t first_processor = 1;

	if (size < CPU_MASK_SIZE)
		return -EINVAL;
	return give(to, &first_processor, CPU_MASK_SIZE) ?: CPU_MASK_SIZE;
}

static int check_affinity(uint32_t from, uint32_t size)
{
	uint32_t mask = 0;

	return fetch(&mask, from, size < sizeof(mask) ? size : sizeof(mask))
		   ?: mask & 1 ? 0
			       : -EINVAL;
}

SYSCALL_PROCESS(242, sys_sched_getaffinity, "ddp", give_affinity(frame->edx, frame->ecx))
SYSCALL_PROCESS(241, sys_sched_setaffinity, "ddp", check_affinity(frame->edx, frame->ecx))
