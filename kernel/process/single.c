/*
 * One task at a time: it goes to ring 3 as lesson 2's visits do, and comes back when it ends.
 *
 * What it can be told by signals is its end.
 */
#include "kernel/process/single.h"

#include "kernel/cpu/descriptors.h"
#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"
#include "kernel/task/task.h"
#include "kernel/process/task_signal.h"
#include "kernel/cpu/user_mode.h"
#include "mm/space.h"

static struct task task = { .pid = 1, .pgrp = 1, .session = 1, .name = "kernel" };
struct task *current = &task;

static void single_exception(struct trap_frame *frame)
{
	struct signal_cause cause;

	printk("%s: %s at 0x%08x\n", task.name, trap_name(frame->vector), frame->eip);
	task_exit(signal_of_exception(frame, &cause));
}

/* On the way back to ring 3: a signal ends the program. */
static void single_before_return(struct trap_frame *frame)
{
	if ((frame->cs & 3) != 3)
		return;
	for (int signal = 1; signal <= SIGNALS; signal++)
		if (task.signals.pending & SIGNAL_BIT(signal))
			task_exit(signal);
}

void task_single_initialize(void)
{
	trap_register_user(single_exception);
	trap_register_return(single_before_return);
}

int task_single_run(const struct trap_frame *frame)
{
	trap_return_work = 0;
	task.signals.pending = 0;
	user_enter(frame->eip, frame->user_esp);
	return task.status;
}

void task_exit(int32_t status)
{
	task.status = status;
	user_leave();
}

struct task *task_next(const struct task *previous)
{
	return previous ? NULL : &task;
}

struct task *task_find(int32_t pid)
{
	return pid == task.pid ? &task : NULL;
}

void task_signal_cause(struct task *target, int signal, const struct signal_cause *cause)
{
	if (signal == SIGCHLD || signal == SIGCONT || signal == SIGWINCH || signal == SIGURG)
		return;
	target->signals.pending |= SIGNAL_BIT(signal);
	trap_return_work = 1;
}

void task_signal(struct task *target, int signal)
{
	task_signal_cause(target, signal, NULL);
}

unsigned task_signal_group(int32_t pgrp, int signal)
{
	if (pgrp != task.pgrp)
		return 0;
	task_signal(&task, signal);
	return 1;
}

bool task_signal_pending(void)
{
	return task.signals.pending;
}

/* Nothing is blocked here. */
void task_signal_suspend(uint64_t blocked)
{
}

void task_signal_resume(void)
{
}

bool task_signal_ignored(const struct task *target, int signal)
{
	return false;
}

bool task_group_is_orphaned(const struct task *member)
{
	return true;
}

int task_empty_space(void)
{
	if (task.space) {
		space_clear(task.space);
		return 0;
	}
	task.space = space_create();
	if (!task.space)
		return -ENOMEM;
	space_use(task.space);
	return 0;
}

void task_reset_for_exec(void)
{
	task.thread_local = 0;
	descriptors_set_thread_local(0);
	fpu_reset();
}
