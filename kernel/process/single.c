/*
 * One program at a time: it goes to user mode as lesson 2's visits do, and comes back when it ends.
 *
 *	task_single_run --> user_enter --> the program ... exit, or a signal
 *	      ^			^				|
 *	      +----- status ----+-------- user_leave <-- process_exit
 *
 * There is no other task to switch to, no handler, and no job control: what a signal
 * can do is end the program. It does so where the kernel is about to return to it.
 */
#include "kernel/process/single.h"

#include "kernel/cpu/user_entry.h"
#include "kernel/lib/errno.h"
#include "kernel/process/signal.h"
#include "kernel/report/printk.h"
#include "mm/space.h"

static struct process process = { .leader = &process, .pgrp = 1, .session = 1 };

/* An exception ends the program, with the signal that a process would get. */
static void single_exception(struct trap_frame *frame)
{
	printk("%s: %s at 0x%08x\n", current->name, trap_name(frame->vector), frame->eip);
	process_exit(signal_of_exception(frame->vector));
}

/* Called before every return from a trap while trap_return_work is not 0. Signals that a call has
 * blocked or unblocked for itself alone (ppoll) are as before once it returns. */
static void single_before_return(struct trap_frame *frame)
{
	struct process_signals *signals = &process.signals;
	uint64_t ready = signals->pending & ~signals->blocked;

	if ((frame->cs & 3) != 3)
		return;
	for (int signal = 1; signal <= SIGNALS; signal++)
		if (ready & SIGNAL_BIT(signal))
			process_exit(signal);
	trap_return_work &= ~WORK_SIGNAL;
	signals->blocked = signals->is_suspended ? signals->saved : signals->blocked;
	signals->is_suspended = false;
	signal_update(&process);
}

/* Its caller becomes the one task. */
void task_single_initialize(void)
{
	process.task = current;
	current->process = &process;
	trap_user_handler = single_exception;
	trap_do_work = single_before_return;
}

/* Returns the program's wait status. SIGKILL can only be exec's here: the program was not loaded
 * whole, so it must not run. Other signals came too late for the program before it. */
int task_single_run(const struct trap_frame *frame)
{
	bool is_broken = process.signals.pending & SIGNAL_BIT(SIGKILL);

	trap_return_work = 0;
	process.signals = (struct process_signals){ .actions = process.signals.own };
	current->has_signal = false;
	if (is_broken)
		return SIGKILL;
	user_enter(frame->eip, frame->user_esp);
	return process.status;
}

/* user_leave returns where user_enter was called: in task_single_run. */
void process_exit(int32_t status)
{
	process.status = status;
	process.signals.pending = 0;
	user_leave();
}

/* From any context. Wakes no task: the only one halts in wait_idle.c, and checks again. */
void signal_send(struct process *target, int signal)
{
	if (SIGNAL_BIT(signal) & SIGNALS_NOTHING)
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

/* The one space is kept from one program to the next. */
int process_empty_space(void)
{
	if (!current->space)
		current->space = space_create();
	else
		space_clear(current->space);
	if (!current->space)
		return -ENOMEM;
	space_use(current->space);
	return 0;
}

/* As in lesson 4, without handlers to reset. */
void process_reset_for_exec(void)
{
	current->thread_local = (struct thread_segments){ { 0 } };
	descriptors_set_thread_local(&current->thread_local);
	fpu_reset();
}
