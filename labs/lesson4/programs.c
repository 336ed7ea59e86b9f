/*
 * Programs that the kernel starts itself: threads of the kernel that turn into programs.
 *
 *	program_run(/bin/sh)		the new thread, "become_program"
 *	creates it		-->	loads the program into a space of its own
 *	sleeps for `done`	<--	says whether that worked
 *	waits for its end		enters user mode, and never returns
 *
 * The two share a struct start on the starter's stack. It lives long enough, because the starter
 * sleeps until `done`.
 */
#include "labs/lesson4/programs.h"

#include "kernel/lib/errno.h"
#include "kernel/process/exec.h"
#include "kernel/task/lock.h"
#include "kernel/task/sched.h"
#include "kernel/process/process.h"

#define STATUS_NOT_FOUND (127 << 8)

/* What the starter and the new task share, until it is known whether the program runs. */
struct start {
	int count;
	char *const *words;
	int error;
	struct semaphore done;
};

/* The space of before is replaced only if the program could be loaded. */
int program_become(int count, char *const words[])
{
	if (!current->process)
		process_create(current);
	return exec_at_terminal(count, words, current->frame);
}

/* After semaphore_up `start` may be gone: the error is kept aside. */
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

/* Children that outlive the program become children of this task, which ignores SIGCHLD: so they
 * disappear without being waited for. The program itself sends no signal to this task, and is
 * waited for. */
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
