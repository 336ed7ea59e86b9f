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
#include "kernel/linux/process/thread_local.h"
#include "kernel/linux/process/threads.h"
#include "kernel/process/family.h"
#include "kernel/task/sched.h"
#include "kernel/task/switch.h"
#include "kernel/task/task_make.h"
#include "mm/user_copy.h"

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

/* ---- children ---- */

/* A child that has not run yet may still be changed: kernel code keeps the processor. */
static int clone_child(uint32_t flags, const struct trap_frame *frame)
{
	const struct process *leader = current->process->leader;
	struct thread_segments segments = current->thread_local;
	uint32_t changed = flags & CLONE_VFORK ? 0 : CHANGED;

	if (flags & ~(OF_ALL | CLONE_VM | CLONE_VFORK) || flags & CHANGED & ~changed ||
	    (flags & CLONE_PARENT && !leader->parent))
		return -EINVAL;
	int error = flags & CLONE_SETTLS ? thread_local_from_user(frame->esi, &segments, false) : 0;

	if (error)
		return error;
	int32_t pid = process_fork(&(struct fork_request){
	    .flags = flags & ~(NOTHING | CHANGED),
	    .stack = frame->ecx,
	    .parent_word = frame->edx,
	    .child_word = frame->edi,
	});
	struct process *child = pid > 0 && changed ? process_find(pid) : NULL;

	if (child)
		child->task->thread_local = segments;
	if (child && flags & CLONE_PARENT) {
		child->parent = leader->parent;
		child->exit_signal = leader->exit_signal;
	}
	return pid;
}

/* ---- threads ---- */

/* What threads have in common is the leader's; the rest of the new process is zero. */
static void share_program(struct process *child, const struct trap_frame *frame)
{
	const struct process *parent = current->process;

	program_follow(child);
	process_inherit(child);
	child->files = parent->files;
	child->task->space = current->space;
	child->signals.actions = parent->signals.actions;
	child->signals.stack.flags = SS_DISABLE;
	child->set_at_begin = frame->ebx & CLONE_CHILD_SETTID ? frame->edi : 0;
	child->clear_on_exit = frame->ebx & CLONE_CHILD_CLEARTID ? frame->edi : 0;
}

/* As fork does it: kernel/process/fork.c has the picture. The thread begins where clone returns,
 * with 0 in EAX, and on the stack that the program has made for it; without one, on its parent's.
 * The unit of floating point may hold a newer state than the task has: it is saved first. */
static void set_thread_registers(struct task *task, uint32_t stack)
{
	struct switch_frame *frame = (struct switch_frame *)task->frame - 1;

	*task->frame = *current->frame;
	task->frame->eax = 0;
	if (stack)
		task->frame->user_esp = stack;
	*frame = (struct switch_frame){ .resume = program_begin };
	task->esp = (uintptr_t)frame;
	task_save_fpu(current);
	task->fpu = current->fpu;
}

/* Of the flags of SHARED a thread has all: what Linux allows between is refused. The parent's word
 * is written before the thread runs; an address that is bad is ignored, as by fork. -EINVAL,
 * -EFAULT for a segment, -EAGAIN: the program ends, or there are too many tasks. */
static int clone_thread(uint32_t flags, const struct trap_frame *frame)
{
	struct thread_segments segments = current->thread_local;

	if ((flags & SHARED) != SHARED || flags & ~(SHARED | CLONE_SYSVSEM | OF_ALL))
		return -EINVAL;
	int error = flags & CLONE_SETTLS ? thread_local_from_user(frame->esi, &segments, false) : 0;
	bool may_join = !error && !program_is_ending() && !process_limit_is_reached();
	struct task *task = may_join ? task_create(current->name) : NULL;

	if (!task)
		return error ? error : -EAGAIN;
	int32_t pid = task->pid;

	task->thread_local = segments;
	share_program(process_create(task), frame);
	set_thread_registers(task, frame->ecx);
	if (flags & CLONE_PARENT_SETTID)
		copy_to_user(frame->edx, &pid, sizeof(pid));
	sched_begin(task);
	return pid;
}

int clone_more(const struct trap_frame *frame)
{
	return frame->ebx & CLONE_THREAD ? clone_thread(frame->ebx, frame)
					 : clone_child(frame->ebx, frame);
}
