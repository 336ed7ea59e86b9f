/*
 * exit: a process ends, and its parent learns of it.
 *
 * What a program used is freed at once. Two things outlive it: the status, until the parent asks
 * for it (a zombie), and the kernel stack, until another task runs:
 *
 *	process_exit	files, alarm, space		freed by the process itself
 *	task_bury	kernel stack			freed by the next task that runs
 *	process_wait	task, with the status		freed by the parent
 *
 * Children that are left go to init, or to a process on the way there that has asked for them. If
 * init ends, no process is left to adopt them, and the machine ends.
 */

#include "fs/files.h"
#include "fs/tty/tty.h"
#include "kernel/cpu/machine.h"
#include "kernel/process/exec.h"
#include "kernel/process/family.h"
#include "kernel/process/signal_actions.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"
#include "kernel/task/sched.h"
#include "kernel/task/task_make.h"

#define LAST_STATUS 61 /* the highest status that the machine can end with */

/* Could its parent continue it? That is so if the parent is in another group of the same session. A
 * parent that is ending cannot continue any child, not even those that have no new parent yet. */
static bool has_keeper(const struct process *process)
{
	const struct process *parent = process->parent;

	return parent && parent->task->life != TASK_ZOMBIE && parent->pgrp != process->pgrp &&
	       parent->session == process->session;
}

/* No process outside the group could continue it, so the terminal must not stop it (POSIX). */
bool process_group_is_orphaned(const struct process *member)
{
	for (const struct process *each = process_next(NULL); each; each = process_next(each))
		if (each->pgrp == member->pgrp && each->task->life != TASK_ZOMBIE &&
		    has_keeper(each))
			return false;
	return true;
}

/* Will no parent ask how the process ended? */
static bool is_unwanted(const struct process *process)
{
	if (!process->parent)
		return true;
	const struct linux_signal_action *action = &process->parent->signals.actions[SIGCHLD - 1];

	return process->exit_signal == SIGCHLD &&
	       (action->handler == SIGNAL_IGNORE || (action->flags & SA_NOCLDWAIT));
}

/* A stopped process that no other can continue gets SIGHUP and SIGCONT. */
static void continue_orphan(struct process *process)
{
	if (process->task->life != TASK_STOPPED || !process_group_is_orphaned(process))
		return;
	signal_send_group(process->pgrp, SIGHUP);
	signal_send_group(process->pgrp, SIGCONT);
}

/* For a child whose parent ends: the signal that it has asked for, too. */
static void release_stopped(struct process *child)
{
	if (child->death_signal && child->task->life != TASK_ZOMBIE)
		signal_send(child, child->death_signal);
	continue_orphan(child);
}

/* By the status: the low seven bits are the signal that ended it, or 0 and then the exit code. If
 * the current process was the one of its group that has_keeper, the stopped members are told. */
static void tell_end(struct process *process)
{
	int signal = process->status & 0x7f;

	process_notify_parent(process, signal ? CLD_KILLED : CLD_EXITED,
			      signal ? signal : process->status >> 8);
	if (process != current->process || !has_keeper(process))
		return;
	for (struct process *each = process_next(NULL); each; each = process_next(each))
		if (each->pgrp == process->pgrp)
			continue_orphan(each);
}

/* May sleep: the last one to close a pipe wakes its readers, a file may have to be written. */
static void close_files(void)
{
	struct files *files = current->process->files;

	if (tty_leave)
		tty_leave();
	current->process->files = NULL;
	if (files)
		files_destroy(files);
}

/* The process that adopts the current task's children: init, or an ancestor that has asked to. */
static struct process *find_init(void)
{
	struct process *process = current->process->parent;

	while (process && !process->adopts)
		process = process->parent;
	return process ? process : process_find(INIT);
}

/* The emulator's own statuses are above LAST_STATUS: such a program's end is reported in words. */
void exec_end_machine(const char *name, int32_t status)
{
	int code = exec_shell_status(status);

	if (code > LAST_STATUS)
		printk("%s: ended with status %d\n", name, code);
	machine_exit(code <= LAST_STATUS ? code : EXIT_FAILURE);
}

/* EXERCISE 4.5 (the life of a process, part 2: exit).

   - leave_children (your own helper): each child of the current process gets find_init() as its
     parent, and SIGCHLD as its exit signal. A stopped child may have lost its last keeper:
     release_stopped, while the current task counts as ended (TASK_ZOMBIE: see has_keeper). A
     child that is a zombie already is reported to the new parent (tell_end), or freed if its
     status is unwanted (is_unwanted).
   - process_exit: ends the current process with this wait status; does not return. If it is init
     (pid INIT), the machine ends: exec_end_machine. Otherwise its files are closed, its alarm is
     cancelled, the word at clear_on_exit becomes 0 in the program's memory (not if that memory
     is borrowed), and its space is left (process_leave_space). It drops all signals, leaves its
     children, tells its parent, and is buried; the task itself is freed at once only if its
     status is unwanted.

   Pitfalls: a signal's default action calls process_exit with interrupts disabled, and closing
   files may sleep: enable them for that. But a process without a space counts as a kernel
   thread, and must not be pre-empted. As soon as the task is a zombie its parent may free it:
   from then to task_bury no other task may run. A child that is freed is out of the list of
   processes. */
/* SOLUTION 4.5 { */
/* The next one is found first: task_free takes the child out of the list. */
static void leave_children(void)
{
	struct process *init = find_init(), *next;

	for (struct process *child = process_next(NULL); child; child = next) {
		next = process_next(child);
		if (child->parent != current->process)
			continue;
		child->parent = init;
		child->exit_signal = SIGCHLD;
		release_stopped(child);
		if (child->task->life != TASK_ZOMBIE)
			continue;
		if (is_unwanted(child))
			task_free(child->task);
		else
			tell_end(child);
	}
}

/* From a system call, or from the delivery of a signal. Interrupts may be on or off. */
void process_exit(int32_t status)
{
	struct process *process = current->process;
	const uint32_t zero = 0;

	preempt_disable();
	interrupts_enable();
	if (current->pid == INIT)
		exec_end_machine("init", status);
	close_files();
	timer_cancel(&process->alarm);
	if (process->clear_on_exit && !process->is_borrowing)
		copy_to_user(process->clear_on_exit, &zero, sizeof(zero));
	process_leave_space();
	interrupts_disable();
	ASSERT(!current->held);
	process->status = status;
	current->life = TASK_ZOMBIE;
	signal_drop_all(process);
	leave_children();
	bool unwanted = is_unwanted(process);

	tell_end(process);
	task_bury(unwanted);
}
/* } SOLUTION 4.5 */
