/*
 * The initial state of a new program: a process, an empty space, and everything else as if it were
 * the first program.
 *
 * exec replaces the program of a task, and the task stays: its pid, its family, its open files. A
 * child made by vfork has only borrowed its parent's space; it gives that back here, by exec or at
 * its end, and the parent wakes.
 */
#include "kernel/process/family.h"
#include "kernel/task/task_make.h"
#include "mm/space.h"
#include "mm/user_copy.h"

_Static_assert(sizeof(struct task) + sizeof(struct process) <= TASK_SIZE, "there is room for both");

/* ---- a process for a task ---- */

/* In the room after the task, which is zero: nothing to allocate, and nothing to free. */
struct process *process_create(struct task *task)
{
	struct process *process = (struct process *)(task + 1);

	process->task = task;
	process->leader = process;
	process->signals.actions = process->signals.own;
	process->pgrp = process->session = task->pid;
	task->process = process;
	return process;
}

/* For CLONE_CHILD_SETTID. A bad address is ignored. */
void process_forked(void)
{
	if (current->process->set_at_begin)
		copy_to_user(current->process->set_at_begin, &current->pid, sizeof(current->pid));
	current->process->set_at_begin = 0;
}

/* ---- its space ---- */

/* The parent of a vfork child sleeps in its own queue `children` until is_borrowing is false. */
void process_leave_space(void)
{
	struct process *process = current->process;
	struct space *space = task_unload();

	if (process->is_borrowing) {
		process->is_borrowing = false;
		wait_wake(&process->parent->children);
	} else if (space) {
		space_destroy(space);
	}
}

/* The space of a kernel thread that becomes a program is its first one; one that is borrowed must
 * not be cleared, because the parent needs it. */
int process_empty_space(void)
{
	int error = program_finish ? program_finish(PROGRAM_REPLACED, true) : 0;

	if (error)
		return error;
	if (current->space && !current->process->is_borrowing) {
		space_clear(current->space);
		return 0;
	}
	struct space *space = space_create();

	if (!space)
		return -ENOMEM;
	bool enabled = interrupts_disable();

	process_leave_space();
	current->space = space;
	task_load(current);
	interrupts_restore(enabled);
	return 0;
}

/* ---- as if it were the first one ---- */

/* Handlers were functions of the old program, and so were thread-local storage and the registers of
 * the unit. Signals that are ignored stay ignored. */
void process_reset_for_exec(void)
{
	struct process_signals *signals = &current->process->signals;
	struct linux_signal_action *action = signals->actions, *end = action + SIGNALS;

	for (; action < end; action++)
		*action =
		    (struct linux_signal_action){ .handler = action->handler == SIGNAL_IGNORE };
	signals->stack = (struct linux_signal_stack){ .flags = SS_DISABLE };
	current->process->clear_on_exit = 0;
	current->thread_local = (struct thread_segments){ { 0 } };
	descriptors_set_thread_local(&current->thread_local);
	fpu_reset();
}
