/*
 * Programs that the kernel starts itself: kernel threads that become programs.
 *
 *	program_run(/bin/sh)		the new thread, "become_program"
 *	creates it		-->	loads the program into a space of its own
 *	waits for its end		enters user mode, and never returns
 *
 * The two share a struct start on the starter's stack. It lives long enough, because the starter
 * waits for the end.
 */
#include "labs/lesson4/programs.h"

#include "kernel/lib/errno.h"
#include "kernel/process/exec.h"
#include "kernel/process/family.h"
#include "kernel/task/sched.h"

/* What the new task is to run. */
struct start {
	int count;
	char *const *words;
};

/* The space of before is replaced only if the program could be loaded. */
int program_become(int count, char *const words[])
{
	if (!current->process)
		process_create(current);
	return exec_at_terminal(count, words, current->frame);
}

/* A program that cannot be loaded ends with the status that a shell gives it. */
static void become_program(void *argument)
{
	const struct start *start = argument;

	preempt_disable();
	int error = program_become(start->count, start->words);

	if (error)
		process_exit(exec_report(start->words[0], error) << 8);
	program_enter(current->frame);
}

/* Children that outlive the program become children of this task, which ignores SIGCHLD: so they
 * disappear without being waited for. The program itself sends no signal to this task, and is
 * waited for. */
int program_run(int count, char *const words[])
{
	struct start start = { count, words };
	struct wait_news news = { .status = -EAGAIN };

	if (!current->process)
		process_create(current);
	current->process->signals.actions[SIGCHLD - 1].handler = SIGNAL_IGNORE;
	current->process->waits_for = WAIT_ALL;
	preempt_disable();
	struct task *task = kthread_create(words[0], become_program, &start);
	int32_t pid = task ? task->pid : 0;

	if (task)
		process_create(task)->parent = current->process;
	preempt_enable();
	if (pid)
		process_wait(pid, 0, &news);
	return news.status;
}
