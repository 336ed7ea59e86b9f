/*
 * wait: a parent asks for news of its children, and frees those that have ended.
 *
 * The parent sleeps in its queue `children` until one of them has news: it has ended, or was
 * stopped or continued. It checks with interrupts disabled, so that no child can end between
 * the check and the sleep:
 *
 *	look:	> 0	a child's pid, and its news
 *		0	there are such children, but no news: sleep, or return with WNOHANG
 *		-ECHILD	there are no such children: nothing to wait for
 */

#include "kernel/lib/errno.h"
#include "kernel/process/family.h"
#include "kernel/task/task_make.h"

/* waitpid's first argument: a pid, -1 for any child, 0 for the caller's group, -n for group n. A
 * child whose end does not send SIGCHLD is meant only if the call asks for such children. */
bool process_is_meant(const struct process *child, int32_t which)
{
	uint32_t kinds = current->process->waits_for;
	bool is_clone = child->exit_signal != SIGCHLD;

	if (child->parent != current->process->leader ||
	    (!(kinds & WAIT_ALL) && is_clone != !!(kinds & WAIT_CLONES)))
		return false;
	if (which > 0)
		return child->task->pid == which;
	return which == -1 || child->pgrp == (which == 0 ? current->process->pgrp : -which);
}

/* News is reported once: a second wait does not see the same stop again. */
void process_fetch(struct process *child, struct wait_news *news)
{
	const struct task *task = child->task;

	news->status = child->has_continued				 ? WAIT_STATUS_GOES_ON
		       : child->has_stopped && task->life != TASK_ZOMBIE ? child->stop_status
									 : child->status;
	news->user_ticks = task->user_ticks + child->children_user_ticks;
	news->system_ticks = task->system_ticks + child->children_system_ticks;
	news->counts = child->children_counts;
	child->has_stopped = child->has_continued = false;
}

/* EXERCISE 4.5 (the life of a process, part 3: wait). The results are in
   kernel/process/family.h.

   - has_news (your own helper): a zombie always has news; a child that was stopped or continued
     has it until its parent fetches it, for callers that ask for that (WUNTRACED, WCONTINUED).
   - reap (your own helper): the current process adds the child's times to its children's, and the
     task is freed.
   - look (your own helper): fetches the news of the first child that matches `which`, and reaps a
     zombie. Results as in the opening comment.
   - process_wait: sleeps in its leader's queue `children` (its own, unless the program has
     threads) until look has a result, or returns at once
     with WNOHANG. -EINVAL for options that are not in WAIT_OPTIONS.

   Pitfalls: "there is no such child" is another answer than "no news yet". No child may end
   between the check and the sleep. A zombie's status is its end, even if it was continued before
   and that news was never fetched. */
/* SOLUTION 4.5 { */
static bool has_news(const struct process *child, uint32_t options)
{
	return child->task->life == TASK_ZOMBIE || (child->has_stopped && (options & WUNTRACED)) ||
	       (child->has_continued && (options & WCONTINUED));
}

static void reap(struct process *child, const struct wait_news *news)
{
	current->process->children_user_ticks += news->user_ticks;
	current->process->children_system_ticks += news->system_ticks;
	task_free(child->task);
}

static int look(int32_t which, uint32_t options, struct wait_news *news)
{
	int result = -ECHILD;

	for (struct process *child = process_next(NULL); child; child = process_next(child)) {
		if (!process_is_meant(child, which))
			continue;
		result = 0;
		if (!has_news(child, options))
			continue;
		result = child->task->pid;
		if (child->task->life == TASK_ZOMBIE)
			child->has_continued = false;
		process_fetch(child, news);
		if (child->task->life == TASK_ZOMBIE)
			reap(child, news);
		break;
	}
	return result;
}

int process_wait(int32_t which, uint32_t options, struct wait_news *news)
{
	int32_t pid;

	if (options & ~WAIT_OPTIONS)
		return -EINVAL;
	if (options & WNOHANG)
		return look(which, options, news);
	int error = wait_event(&current->process->leader->children,
			       (pid = look(which, options, news)) != 0);

	return error ? error : pid;
}
/* } SOLUTION 4.5 */
