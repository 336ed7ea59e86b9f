/*
 * Making tasks by clone with flags that kernel/process/fork.c refuses: what they say the new one
 * shares with the old.
 *
 *	CLONE_THREAD			a task of the same program, which shares all it can
 *	CLONE_VM and CLONE_VFORK	a child that borrows the memory, until exec or its end
 *	neither				a child with copies of memory and files
 *
 * What is between these is refused with -EINVAL: memory that two programs share, or descriptors or
 * the working directory alone; namespaces; and descriptors for processes (CLONE_PIDFD). So are the
 * combinations that Linux refuses: clone(2).
 */
#include "kernel/lib/errno.h"
#include "kernel/linux/process/thread_local.h"
#include "kernel/linux/process/threads.h"
#include "kernel/process/family.h"

#define CLONE_FS       0x00000200u
#define CLONE_FILES    0x00000400u
#define CLONE_SIGHAND  0x00000800u
#define CLONE_PTRACE   0x00002000u
#define CLONE_PARENT   0x00008000u
#define CLONE_THREAD   0x00010000u
#define CLONE_SYSVSEM  0x00040000u
#define CLONE_SETTLS   0x00080000u
#define CLONE_DETACHED 0x00400000u
#define CLONE_UNTRACED 0x00800000u
#define CLONE_IO       0x80000000u

#define SHARED	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)
#define WORDS	(CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID)
#define NOTHING (CLONE_PTRACE | CLONE_DETACHED | CLONE_UNTRACED | CLONE_IO) /* no effect here */
#define CHANGED (CLONE_PARENT | CLONE_SETTLS) /* of a child that does not run yet */
#define OF_ALL	(CLONE_SIGNAL_MASK | WORDS | NOTHING | CHANGED)
#define FORKED	(CLONE_SIGNAL_MASK | WORDS | CLONE_VM | CLONE_VFORK) /* what process_fork knows */

/* -EINVAL for what is refused. A thread has all of SHARED: Linux allows what is between. Nothing
 * can be changed of a child that the call waits for: it has run when process_fork returns. */
static int check_clone_flags(uint32_t flags)
{
	bool joins = flags & CLONE_THREAD;
	uint32_t allowed = joins ? SHARED | CLONE_SYSVSEM : CLONE_VM | CLONE_VFORK;

	if (flags & ~(allowed | OF_ALL) || (joins && (flags & SHARED) != SHARED) ||
	    (flags & CLONE_VFORK && flags & CHANGED))
		return -EINVAL;
	return !joins && flags & CLONE_PARENT && !current->process->leader->parent ? -EINVAL : 0;
}

/* A thread's own are its words, its registers and its pending signals: process_fork has made these.
 * The actions are the leader's, and nobody is told of its end. */
static void join_program(struct process *thread)
{
	program_follow(thread);
	thread->parent = NULL;
	thread->signals.actions = current->process->signals.actions;
	thread->signals.stack = (struct linux_signal_stack){ .flags = SS_DISABLE };
}

/* process_fork makes either kind. It has not run yet when that returns, since kernel code keeps the
 * processor, and so it may still be changed. -EFAULT for a segment; -EAGAIN: the program ends, or
 * there are too many tasks. */
int clone_more(const struct trap_frame *frame)
{
	uint32_t flags = frame->ebx;
	bool joins = flags & CLONE_THREAD;
	const struct process *leader = current->process->leader;
	struct thread_segments segments = current->thread_local;
	int error = check_clone_flags(flags);

	if (!error && flags & CLONE_SETTLS)
		error = thread_local_from_user(frame->esi, &segments, false);
	if (error)
		return error;
	if (process_limit_is_reached() || (joins && program_is_ending()))
		return -EAGAIN;
	int32_t pid = process_fork(&(struct fork_request){
	    .flags = flags & (joins ? WORDS : FORKED),
	    .stack = frame->ecx,
	    .parent_word = frame->edx,
	    .child_word = frame->edi,
	    .is_thread = joins,
	});
	struct process *made = pid > 0 && !(flags & CLONE_VFORK) ? process_find(pid) : NULL;

	if (made)
		made->task->thread_local = segments;
	if (made && joins) {
		join_program(made);
	} else if (made && flags & CLONE_PARENT) { /* the caller's sibling */
		made->parent = leader->parent;
		made->exit_signal = leader->exit_signal;
	}
	return pid;
}
