/*
 * fork: creates a process as a copy of another one.
 *
 * The child's task has never run, so its stack is written as if it had been switched away from on
 * its way to user mode. The first switch_to "returns" to program_begin, which pops the trap frame,
 * a copy of the parent's with eax = 0:
 *
 *	top of the stack	trap frame: as the parent's, eax = 0
 *	task->esp -->		struct switch_frame, resume = program_begin
 *
 * So one call returns twice: in the parent with the child's pid, in the child with 0.
 *
 * For programs' system calls only: the current task must have a process and a space. process_fork
 * may sleep (vfork).
 */
#include "fs/files.h"
#include "kernel/lib/string.h"
#include "kernel/process/family.h"
#include "kernel/task/sched.h"
#include "kernel/task/switch.h"
#include "kernel/task/task_make.h"
#include "mm/space.h"

#define KNOWN_FLAGS                                                                                \
	(CLONE_SIGNAL_MASK | CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | \
	 CLONE_CHILD_SETTID)

/* The child's memory and files; a thread's are the program's own. If memory runs out, what it has
 * of them is freed again. */
static int copy_resources(struct process *child, const struct fork_request *request)
{
	struct space *space = current->space;
	struct files *files = current->process->files;

	child->files = request->is_thread ? files : files_copy(files);
	child->is_borrowing = request->flags & CLONE_VM;
	child->task->space = child->is_borrowing || request->is_thread ? space : space_copy(space);
	if (child->files && child->task->space)
		return 0;
	if (child->files)
		files_destroy(child->files);
	if (child->task->space && !child->is_borrowing)
		space_destroy(child->task->space);
	return -ENOMEM;
}

/* What a child has of its parent, a thread of its program: group, session and terminal, where the
 * arguments are, the actions and the mask of signals, and how nice it is. Its pid, times, alarm and
 * pending signals are its own, and begin at zero. */
static void copy_identity(struct process *child, const struct fork_request *request)
{
	struct process *parent = current->process;

	child->parent = parent->leader;
	child->pgrp = parent->pgrp;
	child->session = parent->session;
	child->tty = parent->tty;
	child->arguments = parent->arguments;
	child->environment = parent->environment;
	child->strings_end = parent->strings_end;
	child->task->schedule.nice = current->schedule.nice;
	child->task->thread_local = current->thread_local;
	child->exit_signal = request->flags & CLONE_SIGNAL_MASK;
	if (child->exit_signal > SIGNALS) /* as in Linux, the end is silent then */
		child->exit_signal = 0;
	if (request->flags & CLONE_CHILD_SETTID)
		child->set_at_begin = request->child_word;
	if (request->flags & CLONE_CHILD_CLEARTID)
		child->clear_on_exit = request->child_word;
	child->signals.blocked = parent->signals.blocked;
	child->signals.stack = parent->signals.stack;
	memcpy(child->signals.actions, parent->signals.actions, sizeof(child->signals.own));
}

/* EXERCISE 4.5 (the life of a process, part 1: fork). The flags are in kernel/process/family.h.

   - set_registers (your own helper): the child's trap frame is the parent's, but EAX is 0, and
     ESP is `stack` unless that is 0. Directly below it is the forged switch frame, whose
     `resume` is program_begin. The child's FPU state is the parent's at this moment.
   - process_fork: makes the child, lets it compete (sched_begin), and returns its pid. -EINVAL
     for a flag that is not in KNOWN_FLAGS, and for CLONE_VM without CLONE_VFORK: two tasks that
     run in one address space would be threads. -EAGAIN if task_create gives no task. -ENOMEM if
     copy_resources fails, and nothing of the child is left then.
   - CLONE_PARENT_SETTID: the child's pid is also stored at parent_word, in the parent's memory,
     before the child runs. A bad address is ignored.
   - CLONE_VM with CLONE_VFORK: the child borrows the parent's memory. The parent sleeps in its
     own queue `children`, undisturbed by signals, until the child no longer borrows or is gone.

   Pitfalls: after sched_begin the child may run, end and be freed: do not touch it any more, and
   find it by its pid. The FPU may hold a newer state than the parent's task structure. */
/* SOLUTION 4.5 { */
/* The unit may hold the parent's state at the moment, newer than what is in memory: it is saved
 * first. */
static void set_registers(struct task *child, uint32_t stack)
{
	struct switch_frame *frame = (struct switch_frame *)child->frame - 1;

	memcpy(child->frame, current->frame, sizeof(*child->frame));
	child->frame->eax = 0;
	if (stack)
		child->frame->user_esp = stack;
	*frame = (struct switch_frame){ .resume = program_begin };
	child->esp = (uintptr_t)frame;
	task_save_fpu(current);
	memcpy(&child->fpu, &current->fpu, sizeof(child->fpu));
}

/* Signals wait, because the child is using the parent's memory. */
static void wait_for_space(int32_t pid)
{
	bool enabled = interrupts_disable();
	const struct process *child;

	while ((child = process_find(pid)) && child->is_borrowing)
		wait_sleep_blocked(&current->process->leader->children);
	interrupts_restore(enabled);
}

/* sched_begin is the last step: from then on the child may run, end and be gone. */
int process_fork(const struct fork_request *request)
{
	uint32_t sharing = request->flags & (CLONE_VM | CLONE_VFORK);

	if ((request->flags & ~KNOWN_FLAGS) || sharing == CLONE_VM)
		return -EINVAL;
	struct task *task = task_create(current->name);

	if (!task)
		return -EAGAIN;
	struct process *child = process_create(task);

	if (copy_resources(child, request) != 0) {
		task_free(task);
		return -ENOMEM;
	}
	int32_t pid = task->pid;

	copy_identity(child, request);
	set_registers(task, request->stack);
	if (request->flags & CLONE_PARENT_SETTID)
		copy_to_user(request->parent_word, &pid, sizeof(pid));
	sched_begin(task);
	if (sharing == (CLONE_VM | CLONE_VFORK))
		wait_for_space(pid);
	return pid;
}
/* } SOLUTION 4.5 */
