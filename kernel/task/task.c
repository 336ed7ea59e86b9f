/* Tasks: making them, counting them, finding them, and what ring 3 sees of the one that runs. */
#include "kernel/task/task.h"

#include "kernel/report/backtrace.h"
#include "kernel/cpu/descriptors.h"
#include "kernel/lib/errno.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"
#include "kernel/task/sched.h"
#include "kernel/lib/string.h"
#include "kernel/process/task_signal.h"
#include "kernel/cpu/task_state.h"
#include "kernel/task/switch.h"
#include "kernel/task/time.h"
#include "mm/kernel_stack.h"
#include "mm/page_alloc.h"
#include "mm/space.h"

#define FIRST_PID 2 /* once the numbers wrap around: 1 stays the first task's */
#define LAST_PID  32767

_Static_assert(sizeof(struct task) <= PAGE_SIZE, "a task is kept in a page");

struct task *current;
uint32_t task_count;

static struct list all = LIST_EMPTY(all);
static int32_t last_pid;
static struct task *fpu_owner;		 /* whose state is in the unit; NULL: nobody's */
static const struct space *loaded_space; /* what the processor sees below the kernel */
static struct task *buried;		 /* has ended; its stack was in use until now */
static bool is_buried_orphan;

struct task *task_next(const struct task *task)
{
	struct list *next = task ? task->in_all.next : all.next;

	return next == &all ? NULL : list_entry(next, struct task, in_all);
}

struct task *task_find(int32_t pid)
{
	struct task *task = task_next(NULL);

	while (task && task->pid != pid)
		task = task_next(task);
	return task;
}

/* ---- beginning and end ---- */

/* A number is free when it names no task, no process group and no session. There are fewer tasks
 * than numbers. */
static bool is_free(int32_t pid)
{
	for (const struct task *task = task_next(NULL); task; task = task_next(task))
		if (task->pid == pid || task->pgrp == pid || task->session == pid)
			return false;
	return true;
}

static int find_pid(void)
{
	do
		last_pid = last_pid < LAST_PID ? last_pid + 1 : FIRST_PID;
	while (!is_free(last_pid));
	return last_pid;
}

static void set_name(struct task *task, const char *name)
{
	size_t length = strlen(name) < TASK_NAME ? strlen(name) : TASK_NAME - 1;

	memcpy(task->name, name, length);
}

struct task *task_create(const char *name)
{
	struct task *task = task_count < TASK_LIMIT ? page_alloc(0) : NULL;
	void *stack = task ? kernel_stack_create() : NULL;

	if (!stack) {
		if (task)
			page_free(task, 0);
		return NULL;
	}
	memset(task, 0, sizeof(*task));
	set_name(task, name);
	task->pid = find_pid();
	task->kernel_stack = stack;
	task->frame = (struct trap_frame *)((uintptr_t)stack + KERNEL_STACK_SIZE) - 1;
	task->begun_ns = time_ns();
	task->schedule.donated = URGENCY_NONE;
	list_append(&all, &task->in_all);
	task_count++;
	return task;
}

void task_free(struct task *task)
{
	list_remove(&task->in_all);
	task_count--;
	if (task->kernel_stack)
		kernel_stack_destroy(task->kernel_stack);
	page_free(task, 0);
}

/* ---- the switch ---- */

void task_save_fpu(struct task *task)
{
	if (fpu_owner == task)
		fpu_save(&task->fpu);
}

/* The unit keeps a program's state while threads of the kernel run: they do not touch it. */
static void load_fpu(struct task *next)
{
	if (fpu_owner == next)
		return;
	if (fpu_owner)
		fpu_save(&fpu_owner->fpu);
	fpu_owner = next;
	fpu_restore(&next->fpu);
}

static void use_space(const struct space *space)
{
	if (space != loaded_space)
		space_use(space);
	loaded_space = space;
}

void task_load(struct task *next)
{
	trap_return_work &= ~WORK_SIGNAL;
	backtrace_use_stack(next->kernel_stack, KERNEL_STACK_SIZE);
	descriptors_set_thread_local(next->thread_local);
	if (!next->space)
		return;
	task_state_set_stack((uintptr_t)(next->frame + 1));
	use_space(next->space);
	load_fpu(next);
	if (task_signal_pending() || next->signals.is_suspended)
		trap_return_work |= WORK_SIGNAL;
}

void task_switched(void)
{
	struct task *task = buried;

	if (!task)
		return;
	buried = NULL;
	kernel_stack_destroy(task->kernel_stack);
	task->kernel_stack = NULL;
	if (is_buried_orphan)
		task_free(task);
}

void task_bury(bool is_orphan)
{
	interrupts_disable();
	task_signal_drop_all(current);
	buried = current;
	is_buried_orphan = is_orphan;
	current->life = TASK_ZOMBIE;
	schedule(SCHED_ENDS);
	panic("task %d has ended, and goes on", current->pid);
}

/* ---- a new program in an old task ---- */

void task_leave_space(void)
{
	struct space *space = current->space;

	if (fpu_owner == current)
		fpu_owner = NULL;
	use_space(NULL);
	current->space = NULL;
	if (current->is_borrowing) {
		current->is_borrowing = false;
		wait_wake(&current->parent->children);
	} else if (space) {
		space_destroy(space);
	}
}

int task_empty_space(void)
{
	if (current->space && !current->is_borrowing) {
		space_clear(current->space);
		return 0;
	}
	struct space *space = space_create();

	if (!space)
		return -ENOMEM;
	bool enabled = interrupts_disable();

	task_leave_space();
	current->space = space;
	task_load(current);
	interrupts_restore(enabled);
	return 0;
}

void task_reset_for_exec(void)
{
	struct task_signals *signals = &current->signals;

	for (unsigned i = 0; i < SIGNALS; i++) {
		bool is_ignored = signals->actions[i].handler == SIGNAL_IGNORE;

		signals->actions[i] = (struct linux_signal_action){ .handler = is_ignored };
	}
	signals->stack = (struct linux_signal_stack){ .flags = SS_DISABLE };
	current->has_called_exec = true;
	current->clear_on_exit = 0;
	current->thread_local = 0;
	descriptors_set_thread_local(0);
	fpu_reset();
}

static const char *explain_double_fault(uint32_t address)
{
	static char text[120];

	if (!kernel_stack_is_guard(address))
		return NULL;
	snprintk(text, sizeof(text),
		 "the kernel's stack of task %d (%s), %u bytes, overflowed at 0x%08x", current->pid,
		 current->name, KERNEL_STACK_SIZE, address);
	return text;
}

void task_initialize(void)
{
	kernel_stack_initialize();
	trap_register_double_fault(explain_double_fault);
}
