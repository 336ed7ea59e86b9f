/*
 * Finds processes.
 *
 * They are found by their tasks: the list of all tasks, without the kernel threads, is the list of
 * all processes.
 */
#include "kernel/process/family.h"

/* The oldest first; NULL begins. Of several processes that are one program, only the leader is
 * returned. */
struct process *process_next(const struct process *process)
{
	struct task *next = task_next(process ? process->task : NULL);

	while (next && !(next->process && next->process->leader == next->process))
		next = task_next(next);
	return next ? next->process : NULL;
}

/* NULL for a pid that no task has, and for kernel threads. */
struct process *process_find(int32_t pid)
{
	const struct task *task = task_find(pid);

	return task ? task->process : NULL;
}

/* For calls whose first argument is a pid, where 0 is the caller. */
struct process *process_of_call(int32_t pid)
{
	return pid ? process_find(pid) : current->process;
}
