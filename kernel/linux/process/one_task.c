/*
 * The functions of tasks, processes and waiting that Linux's calls and /proc need, while there is
 * one program at a time. From lesson 4 on kernel/task and kernel/process implement the same
 * headers.
 *
 * Nobody could continue the program if it stopped, so job control does not stop it. A wait for
 * several queues ends with any interrupt, and its caller checks all of them again (wait_idle.c).
 */

#include "kernel/linux/call.h"
#include "kernel/process/signal_actions.h"
#include "kernel/task/sched.h"

void yield(void)
{
}

/* Walks over all tasks or processes find the one that there is. */
struct task *task_next(const struct task *previous)
{
	return previous ? NULL : current;
}

struct task *task_find(int32_t pid)
{
	return pid == current->pid ? current : NULL;
}

struct process *process_next(const struct process *previous)
{
	return previous ? NULL : current->process;
}

struct process *process_find(int32_t pid)
{
	return pid == current->pid ? current->process : NULL;
}

void wait_join(struct wait_queue *queue, struct waiter *waiter)
{
	waiter->queue = queue;
}

int wait_any(const struct waiter *waiters, unsigned count, uint64_t deadline_ns)
{
	bool enabled CLEANUP(interrupts_leave) = interrupts_disable();

	return wait_sleep_until(count > 0 ? waiters->queue : NULL, deadline_ns);
}

void wait_leave(struct waiter *waiter)
{
}

bool signal_is_ignored(const struct process *process, int signal)
{
	return false;
}

bool process_group_is_orphaned(const struct process *member)
{
	return true;
}
