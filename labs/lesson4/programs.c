/* Programs that the kernel starts itself: threads of the kernel that turn into programs. */
#include "labs/lesson4/programs.h"

#include "kernel/lib/errno.h"
#include "kernel/process/exec.h"
#include "kernel/task/lock.h"
#include "kernel/task/sched.h"
#include "kernel/process/process.h"
#include "kernel/task/switch.h"

#define STATUS_NOT_FOUND (127 << 8)

/* What whoever starts a program and the new task share, until it is known whether it runs. */
struct start {
	int count;
	char *const *words;
	int error;
	struct semaphore done;
};

int program_become(int count, char *const words[])
{
	if (!current->process)
		process_create(current);
	return exec_at_terminal(count, words, current->frame);
}

static void become_program(void *argument)
{
	struct start *start = argument;

	preempt_disable();
	int error = start->error = program_become(start->count, start->words);

	semaphore_up(&start->done);
	if (error)
		process_exit(STATUS_NOT_FOUND);
	program_enter(current->frame);
}

/* Whoever outlives the program becomes a child of this task, and goes without being asked for: it
 * ignores SIGCHLD. The program itself sends no signal, and is waited for. */
int program_run(int count, char *const words[])
{
	struct start start = { .count = count, .words = words };
	struct wait_news news;

	if (!current->process)
		process_create(current);
	current->process->signals.actions[SIGCHLD - 1].handler = SIGNAL_IGNORE;
	preempt_disable();
	struct task *task = kthread_create(words[0], become_program, &start);
	int32_t pid = task ? task->pid : 0;

	if (task)
		process_create(task)->parent = current->process;
	preempt_enable();
	if (!task)
		return -EAGAIN;
	semaphore_down(&start.done);
	process_wait(pid, 0, &news);
	return start.error ? start.error : news.status;
}
