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
#include "kernel/process/signal.h"
#include "kernel/cpu/user_mode.h"
#include "mm/space.h"

static struct process process;
static struct task task = { .pid = 1, .name = "kernel", .process = &process };
static struct process process = { .task = &task, .pgrp = 1, .session = 1 };
struct task *current = &task;

static void single_exception(struct trap_frame *frame)
{
	struct signal_cause cause;

	printk("%s: %s at 0x%08x\n", task.name, trap_name(frame->vector), frame->eip);
	process_exit(signal_of_exception(frame, &cause));
}

/* On the way back to ring 3: a signal ends the program. */
static void single_before_return(struct trap_frame *frame)
{
	if ((frame->cs & 3) != 3)
		return;
	uint64_t ready = process.signals.pending & ~process.signals.blocked;

	for (int signal = 1; signal <= SIGNALS; signal++)
		if (ready & SIGNAL_BIT(signal))
			process_exit(signal);
}

void task_single_initialize(void)
{
	trap_register_user(single_exception);
	trap_register_return(single_before_return);
}

int task_single_run(const struct trap_frame *frame)
{
	trap_return_work = 0;
	process.signals.pending = process.signals.blocked = 0;
	process.signals.is_suspended = false;
	task.has_signal = false;
	user_enter(frame->eip, frame->user_esp);
	return process.status;
}

void process_exit(int32_t status)
{
	process.status = status;
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

/* SIGCHLD, SIGCONT, SIGWINCH and SIGURG do nothing to a program that has no handler for them. */
static bool ends_program(int signal)
{
	return signal != SIGCHLD && signal != SIGCONT && signal != SIGWINCH && signal != SIGURG;
}

void signal_send(struct process *target, int signal)
{
	if (!ends_program(signal))
		return;
	target->signals.pending |= SIGNAL_BIT(signal);
	signal_update(target);
}

unsigned signal_send_group(int32_t pgrp, int signal)
{
	if (pgrp != process.pgrp)
		return 0;
	signal_send(&process, signal);
	return 1;
}

bool signal_is_ignored(const struct process *target, int signal)
{
	return false;
}

bool process_group_is_orphaned(const struct process *member)
{
	return true;
}

int process_empty_space(void)
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

void process_reset_for_exec(void)
{
	task.thread_local = 0;
	descriptors_set_thread_local(0);
	fpu_reset();
}
