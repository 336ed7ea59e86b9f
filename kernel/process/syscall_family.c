/*
 * The calls that make a family of processes: fork, wait, groups and sessions, and sched_yield.
 *
 * A process group is a job of a shell (a pipeline), a session is what one terminal is for. Both are
 * named by the pid of their leader:
 *
 *	session 2	sh (pid 2, group 2)
 *			sort (pid 5, group 4) <- seq (pid 4, group 4)
 */

#include "fs/files.h"
#include "kernel/process/family.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/sched.h"

/* ---- fork and wait ---- */

bool process_limit_is_reached(void)
{
	return task_count >= current->process->files->limits[LIMIT_TASKS].soft;
}

static int make_child(const struct fork_request *request)
{
	return process_limit_is_reached() ? -EAGAIN : process_fork(request);
}

CALL(sys_fork, make_child(&(struct fork_request){ .flags = SIGCHLD }))
CALL(sys_vfork, make_child(&(struct fork_request){ .flags = SIGCHLD | CLONE_VM | CLONE_VFORK }))

/* clone is fork with flags: what the child shares, and which words get its pid. */
static int sys_clone(struct trap_frame *frame)
{
	int32_t pid = make_child(&(struct fork_request){
	    .flags = frame->ebx,
	    .stack = frame->ecx,
	    .parent_word = frame->edx,
	    .child_word = frame->edi,
	});

	return pid == -EINVAL && clone_more ? clone_more(frame) : pid;
}

/* The group of INT32_MIN could not be negated. The status is written after the child is gone: if
 * the address is bad, the news is lost, as on Linux. */
static int wait_for_child(const struct trap_frame *frame, uint32_t usage)
{
	struct wait_news news;
	int32_t which = frame->ebx;

	current->process->waits_for = frame->edx & WAIT_KINDS;
	int32_t pid = which == INT32_MIN ? -ESRCH : process_wait(which, frame->edx, &news);

	if (pid <= 0)
		return pid;
	if (usage_fetched)
		usage_fetched(&news);
	if (frame->ecx && give(frame->ecx, &news.status, sizeof(news.status)) != 0)
		return -EFAULT;
	return usage && wait_give_usage && wait_give_usage(usage, &news) != 0 ? -EFAULT : pid;
}

CALL(sys_waitpid, wait_for_child(frame, 0))
CALL(sys_wait4, wait_for_child(frame, frame->esi))

CALL(sys_getppid, process_parent_pid(current->process->leader))

/* Orphans below this process become its children, not init's. */
static int sys_prctl(struct trap_frame *frame)
{
	if (frame->ebx != PRCTL_SET_SUBREAPER)
		return prctl_more ? prctl_more(frame) : -EINVAL;
	current->process->adopts = frame->ecx != 0;
	return 0;
}

/* ---- groups and sessions ---- */

/* Groups have no structure of their own: one is there as long as it has a member. */
static bool is_group_in_session(int32_t pgrp, int32_t session)
{
	for (const struct process *each = process_next(NULL); each; each = process_next(each))
		if (each->pgrp == pgrp && each->session == session)
			return true;
	return false;
}

/* May it join the group: one of its session, or a new one of its own? A session's leader may not
 * move. */
static bool may_join(const struct process *process, int32_t pgrp)
{
	int32_t pid = process->task->pid, session = process->session;

	return session == current->process->session && session != pid &&
	       (pgrp == pid || is_group_in_session(pgrp, session));
}

/* A shell calls this in the parent and in the child, because it cannot know which runs first. */
static int sys_setpgid(struct trap_frame *frame)
{
	struct process *process = process_of_call(frame->ebx);
	int32_t pgrp = frame->ecx ? frame->ecx : frame->ebx;

	if (pgrp < 0)
		return -EINVAL;
	if (!process || (process != current->process && process->parent != current->process))
		return -ESRCH;
	if (process->files && process->files->program != current->process->files->program)
		return -EACCES; /* it runs a program of its own already */
	if (pgrp == 0)
		pgrp = process->task->pid;
	if (!may_join(process, pgrp))
		return -EPERM;
	process->pgrp = pgrp;
	return 0;
}

CALL(sys_getpgrp, current->process->pgrp)

/* The leader of a group, all of whose members are in its session, cannot begin another one: that
 * group would be in two. */
static int sys_setsid(struct trap_frame *frame)
{
	if (is_group_in_session(current->pid, current->process->session))
		return -EPERM;
	current->process->pgrp = current->process->session = current->pid;
	current->process->tty = 0;
	return current->pid;
}

/* ---- the processor ---- */

CALL(sys_sched_yield, (yield(), 0))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 2, "fork", "", sys_fork },
	{ 7, "waitpid", "dpx", sys_waitpid },
	{ 57, "setpgid", "dd", sys_setpgid },
	{ 64, "getppid", "", sys_getppid },
	{ 65, "getpgrp", "", sys_getpgrp },
	{ 66, "setsid", "", sys_setsid },
	{ 114, "wait4", "dpxp", sys_wait4 },
	{ 120, "clone", "xpppp", sys_clone },
	{ 158, "sched_yield", "", sys_sched_yield },
	{ 172, "prctl", "dxxxx", sys_prctl },
	{ 190, "vfork", "", sys_vfork },
};
