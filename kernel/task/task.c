/*
 * Tasks: creating, counting, finding and freeing them.
 *
 * A task is at the start of a page; the rest of the page is room for its process. All tasks are in
 * one list, by age, except the idle task. A task cannot free the stack that it runs on, so its
 * end takes two tasks:
 *
 *	the one that ends	task_retire(): remembers itself		switch_to --+
 *	the next one		task_switched(): frees that stack  <----------------+
 *
 * The list is changed by tasks only. Interrupt handlers may walk it forward (^C signals a process
 * group): a task is complete before it is linked, and is unlinked before it is freed.
 */
#include "kernel/task/task.h"

#include "kernel/task/task_make.h"
#include "kernel/task/time.h"
#include "mm/kernel_stack.h"
#include "mm/pool.h"

struct task *current;
uint32_t task_count;

static struct pool pool = { .size = TASK_SIZE }; /* the rest of an object is for a process */
static struct list all_tasks = LIST_EMPTY(all_tasks);
static int32_t last_pid;    /* never reused: a group keeps the pid of a leader that has ended */
static struct task *buried; /* has ended; its stack was in use until the last switch */
static bool is_buried_orphan;

/* The oldest first. NULL as the argument begins, NULL as the result ends. */
struct task *task_next(const struct task *task)
{
	struct list *next = task ? task->in_all.next : all_tasks.next;

	return next == &all_tasks ? NULL : list_entry(next, struct task, in_all);
}

/* There are at most TASK_LIMIT: a linear search is fast enough. */
struct task *task_find(int32_t pid)
{
	struct task *task = task_next(NULL);

	while (task && task->pid != pid)
		task = task_next(task);
	return task;
}

/* ---- beginning and end ---- */

/* A task and a stack, or nothing. */
struct task *task_create(const char *name)
{
	struct task *task = task_count < TASK_LIMIT ? pool_alloc(&pool) : NULL;
	void *stack = task ? kernel_stack_create() : NULL;

	if (!stack) {
		if (task)
			pool_free(&pool, task);
		return NULL;
	}
	for (unsigned i = 0; i < TASK_NAME - 1 && name[i]; i++)
		task->name[i] = name[i];
	task->pid = ++last_pid;
	task->kernel_stack = stack;
	task->frame = (struct trap_frame *)((uintptr_t)stack + KERNEL_STACK_SIZE) - 1;
	task->begun_ns = time_ns();
	task->schedule.donated = PRIORITY_NONE;
	list_append(&all_tasks, &task->in_all);
	task_count++;
	return task;
}

/* Not for the current task: see the drawing above. */
void task_free(struct task *task)
{
	list_remove(&task->in_all);
	task_count--;
	if (task->kernel_stack)
		kernel_stack_destroy(task->kernel_stack);
	pool_free(&pool, task);
}

/* The next task_switched, by whichever task, does the rest. */
void task_retire(bool is_orphan)
{
	buried = current;
	is_buried_orphan = is_orphan;
}

/* On the stack of the task that runs now, so that of the one that has ended can be freed. */
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
