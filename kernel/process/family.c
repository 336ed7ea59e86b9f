/* Parents and children: fork, exit, wait. */
#include "kernel/process/family.h"

#include <stddef.h>

#include "kernel/lib/errno.h"
#include "kernel/cpu/interrupts.h"
#include "kernel/report/panic.h"
#include "kernel/task/sched.h"
#include "kernel/task/switch.h"
#include "mm/user_copy.h"
#include "mm/space.h"

#define INIT 1 /* pid of the first program, which inherits orphans */
#define KNOWN_FLAGS                                                                                \
	(CLONE_SIGNAL_MASK | CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | \
	 CLONE_CHILD_SETTID)
#define KNOWN_OPTIONS (WAIT_NOHANG | WAIT_UNTRACED | WAIT_CONTINUED | WAIT_THREADS)

static const struct task_hooks *hooks;

void task_register_hooks(const struct task_hooks *table)
{
	hooks = table;
}

/* ---- beginning ---- */

/* The child's memory and files. Without memory what there is of them is given back. */
static int copy_resources(struct task *child, const struct fork_request *request)
{
	child->files = hooks->files_copy(current->files);
	child->is_borrowing = request->flags & CLONE_VM;
	child->space = child->is_borrowing ? current->space : space_copy(current->space);
	if (child->files && child->space)
		return 0;
	if (child->files)
		hooks->files_destroy(child->files);
	if (child->space && !child->is_borrowing)
		space_destroy(child->space);
	return -ENOMEM;
}

static void copy_signals(struct task_signals *child, const struct task_signals *parent)
{
	child->blocked = parent->blocked;
	child->stack = parent->stack;
	for (unsigned i = 0; i < SIGNALS; i++)
		child->actions[i] = parent->actions[i];
}

static void copy_identity(struct task *child, const struct fork_request *request)
{
	child->parent = current;
	child->pgrp = current->pgrp;
	child->session = current->session;
	child->tty = current->tty;
	child->arguments = current->arguments;
	child->environment = current->environment;
	child->strings_end = current->strings_end;
	child->thread_local = current->thread_local;
	child->schedule.nice = current->schedule.nice;
	child->exit_signal = request->flags & CLONE_SIGNAL_MASK;
	if (child->exit_signal > SIGNALS) /* as in Linux, the end is silent then */
		child->exit_signal = 0;
	if (request->flags & CLONE_CHILD_SETTID)
		child->set_at_begin = request->child_word;
	if (request->flags & CLONE_CHILD_CLEARTID)
		child->clear_on_exit = request->child_word;
	copy_signals(&child->signals, &current->signals);
}

/* EXERCISE 4.5 (the life of a process, part 1: fork):
   1. set_registers: the child's frame is the parent's, but for eax, and for the stack if another
   one is asked for. Below it goes what switch_to pops: a struct switch_frame whose resume is
   program_begin. Its floating-point state is what the parent has in the unit now.
   2. task_fork: task_create, then copy_resources: when that fails nothing may be left of the child.
   Then identity and registers, and sched_begin.
   3. With CLONE_VFORK sleep until the child does not borrow any more; signals wait meanwhile. Find
   it anew by its pid each time: it may be gone. */
/* SOLUTION 4.5 { */
static void set_registers(struct task *child, uint32_t stack)
{
	struct switch_frame *frame = (struct switch_frame *)child->frame - 1;

	*child->frame = *current->frame;
	child->frame->eax = 0;
	if (stack)
		child->frame->user_esp = stack;
	*frame = (struct switch_frame){ .resume = program_begin };
	child->esp = (uintptr_t)frame;
	task_save_fpu(current);
	child->fpu = current->fpu;
}

static void wait_for_space(int32_t pid)
{
	bool enabled = interrupts_disable();
	const struct task *child;

	while ((child = task_find(pid)) && child->is_borrowing)
		wait_sleep_blocked(&current->children);
	interrupts_restore(enabled);
}

int task_fork(const struct fork_request *request)
{
	uint32_t sharing = request->flags & (CLONE_VM | CLONE_VFORK);

	if ((request->flags & ~KNOWN_FLAGS) || sharing == CLONE_VM)
		return -EINVAL;
	struct task *child = task_create(current->name);

	if (!child)
		return -EAGAIN;
	if (copy_resources(child, request) != 0) {
		task_free(child);
		return -ENOMEM;
	}
	int32_t pid = child->pid;

	copy_identity(child, request);
	set_registers(child, request->stack);
	if (request->flags & CLONE_PARENT_SETTID)
		copy_to_user(request->parent_word, &pid, sizeof(pid));
	sched_begin(child);
	if (sharing == (CLONE_VM | CLONE_VFORK))
		wait_for_space(pid);
	return pid;
}
/* } SOLUTION 4.5 */

void task_forked(void)
{
	if (current->set_at_begin)
		copy_to_user(current->set_at_begin, &current->pid, sizeof(current->pid));
	current->set_at_begin = 0;
}

/* ---- the end ---- */

void task_notify_parent(struct task *task, int32_t code, int32_t status)
{
	struct task *parent = task->parent;
	const struct signal_cause cause = { code, { .pid = task->pid }, status };

	if (!parent)
		return;
	uint32_t flags = parent->signals.actions[SIGCHLD - 1].flags;
	bool is_end = code == CLD_EXITED || code == CLD_KILLED;
	int signal = is_end ? task->exit_signal : SIGCHLD;

	if (signal && (is_end || !(flags & SA_NOCLDSTOP)))
		task_signal_cause(parent, signal, &cause);
	wait_wake(&parent->children);
}

bool task_group_is_orphaned(const struct task *member)
{
	for (const struct task *task = task_next(NULL); task; task = task_next(task))
		if (task->pgrp == member->pgrp && task->life != TASK_ZOMBIE && task->parent &&
		    task->parent->pgrp != task->pgrp && task->parent->session == task->session)
			return false;
	return true;
}

/* Does nobody want to know how the task ended? */
static bool is_unwanted(const struct task *task)
{
	if (!task->parent)
		return true;
	const struct linux_signal_action *action = &task->parent->signals.actions[SIGCHLD - 1];

	return task->exit_signal == SIGCHLD &&
	       (action->handler == SIGNAL_IGNORE || (action->flags & SA_NOCLDWAIT));
}

static void tell_end(struct task *task)
{
	int signal = task->status & 0x7f;

	task_notify_parent(task, signal ? CLD_KILLED : CLD_EXITED,
			   signal ? signal : task->status >> 8);
}

/* A stopped child that nobody can continue any more, now that its parent ends, is told so. */
static void release_stopped(struct task *child)
{
	if (child->life != TASK_STOPPED || !task_group_is_orphaned(child))
		return;
	task_signal_group(child->pgrp, SIGHUP);
	task_signal_group(child->pgrp, SIGCONT);
}

static void close_files(void)
{
	struct files *files = current->files;

	hooks->leave_terminal();
	current->files = NULL;
	if (files)
		hooks->files_destroy(files);
}

/* Who inherits the current task's children: init, or somebody on the way there who has asked. */
static struct task *find_init(void)
{
	struct task *task = current->parent;

	while (task && !task->adopts)
		task = task->parent;
	return task ? task : task_find(INIT);
}

/* EXERCISE 4.5 (the life of a process, part 2: exit). A task cannot free the stack that it stands
   on, and its status must stay until the parent asks.
   1. leave_children: each child gets find_init() for a parent, who hears of its end by SIGCHLD. If
   it is a zombie already, init must be told; or, when nobody wants it, it can be freed. For one
   that is stopped: release_stopped.
   2. task_exit: it must not be pre-empted any more: its space goes. Close the files, cancel the
   alarm, zero the word at clear_on_exit (not in borrowed memory), leave the space. Then, with
   interrupts off: status, children, the parent, and task_bury. If this is init, nobody is left to
   adopt orphans: hooks->init_ended. */
/* SOLUTION 4.5 { */
static void leave_children(void)
{
	struct task *init = find_init(), *next;

	for (struct task *task = task_next(NULL); task; task = next) {
		next = task_next(task);
		if (task->parent != current)
			continue;
		task->parent = init;
		task->exit_signal = SIGCHLD;
		release_stopped(task);
		if (task->life != TASK_ZOMBIE)
			continue;
		if (is_unwanted(task))
			task_free(task);
		else
			tell_end(task);
	}
}

void task_exit(int32_t status)
{
	const uint32_t zero = 0;

	preempt_disable();
	interrupts_enable();
	if (current->pid == INIT)
		hooks->init_ended(status);
	close_files();
	timer_cancel(&current->alarm);
	if (current->clear_on_exit && !current->is_borrowing)
		copy_to_user(current->clear_on_exit, &zero, sizeof(zero));
	task_leave_space();
	interrupts_disable();
	ASSERT(!current->held);
	current->status = status;
	current->life = TASK_ZOMBIE;
	leave_children();
	bool unwanted = is_unwanted(current);

	tell_end(current);
	task_bury(unwanted);
}
/* } SOLUTION 4.5 */

/* ---- asking for it ---- */

static bool is_meant(const struct task *child, int32_t which)
{
	if (child->parent != current)
		return false;
	if (which > 0)
		return child->pid == which;
	return which == -1 || child->pgrp == (which == 0 ? current->pgrp : -which);
}

static void fetch(struct task *child, struct wait_news *news)
{
	*news = (struct wait_news){
		.status = child->has_continued ? WAIT_STATUS_GOES_ON : child->status,
		.user_ticks = child->user_ticks + child->children_user_ticks,
		.system_ticks = child->system_ticks + child->children_system_ticks,
	};
	child->has_stopped = child->has_continued = false;
}

/* EXERCISE 4.5 (the life of a process, part 3: wait):
   1. has_news: a zombie always has; a task that was stopped, or continued, since its parent asked
   last: if the options want to know that.
   2. reap: its times are added to those of the current task's children, and the task is freed.
   3. look: the first child that is meant and has news. 0: there are such children, but no news.
   -ECHILD: there are none.
   4. task_wait: look until there is something; with interrupts off between the look and the sleep.
   wait_event does that. */
/* SOLUTION 4.5 { */
static bool has_news(const struct task *child, uint32_t options)
{
	return child->life == TASK_ZOMBIE || (child->has_stopped && (options & WAIT_UNTRACED)) ||
	       (child->has_continued && (options & WAIT_CONTINUED));
}

static void reap(struct task *child, const struct wait_news *news)
{
	current->children_user_ticks += news->user_ticks;
	current->children_system_ticks += news->system_ticks;
	task_free(child);
}

static int look(int32_t which, uint32_t options, struct wait_news *news)
{
	int result = -ECHILD;

	for (struct task *child = task_next(NULL); child; child = task_next(child)) {
		if (!is_meant(child, which))
			continue;
		result = 0;
		if (!has_news(child, options))
			continue;
		result = child->pid;
		if (child->life == TASK_ZOMBIE)
			child->has_continued = false;
		fetch(child, news);
		if (child->life == TASK_ZOMBIE)
			reap(child, news);
		break;
	}
	return result;
}

int task_wait(int32_t which, uint32_t options, struct wait_news *news)
{
	int32_t pid;

	if (options & ~KNOWN_OPTIONS)
		return -EINVAL;
	if (options & WAIT_NOHANG)
		return look(which, options, news);
	int error = wait_event(&current->children, (pid = look(which, options, news)) != 0);

	return error ? error : pid;
}
/* } SOLUTION 4.5 */

/* ---- waitid ---- */

static bool is_wanted(const struct task *child, uint32_t options)
{
	uint32_t news =
	    (child->has_stopped ? WAIT_UNTRACED : 0) | (child->has_continued ? WAIT_CONTINUED : 0);

	return (child->life == TASK_ZOMBIE ? WAIT_EXITED : news) & options;
}

/* A child with news of the wanted kind; *error is -ECHILD when there is no such child at all. */
static struct task *find_wanted(int32_t which, uint32_t options, int32_t *error)
{
	*error = -ECHILD;
	for (struct task *child = task_next(NULL); child; child = task_next(child)) {
		bool meant = is_meant(child, which);

		if (meant && is_wanted(child, options))
			return child;
		*error = meant ? 0 : *error;
	}
	return NULL;
}

/* Looks whether there is news; task_wait takes it, unless it is to stay. */
static int look_id(int32_t which, uint32_t options, struct wait_news *news)
{
	int error;
	struct task *child = find_wanted(which, options, &error);

	if (!child)
		return error;
	bool has_stopped = child->has_stopped, has_continued = child->has_continued;

	if (!(options & WAIT_KEEP))
		return task_wait(child->pid, WAIT_NOHANG | (options & KNOWN_OPTIONS), news);
	child->has_continued = has_continued && child->life != TASK_ZOMBIE;
	fetch(child, news);
	child->has_stopped = has_stopped;
	child->has_continued = has_continued;
	return child->pid;
}

int task_wait_id(int32_t which, uint32_t options, struct wait_news *news)
{
	const uint32_t kinds = WAIT_EXITED | WAIT_UNTRACED | WAIT_CONTINUED;
	int32_t pid;

	if (options & ~(KNOWN_OPTIONS | WAIT_EXITED | WAIT_KEEP) || !(options & kinds))
		return -EINVAL;
	int error = wait_event(&current->children, (pid = look_id(which, options, news)) != 0 ||
						       (options & WAIT_NOHANG));

	return error ? error : pid;
}
