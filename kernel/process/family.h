/* Parents and children: how a program's task begins, ends, and is asked for. */
#pragma once

#include <stdint.h>

#include "kernel/task/task.h"

/* Flags of clone that are understood; the lowest byte is the signal at the child's end. */
#define CLONE_SIGNAL_MASK    0x000000ffu
#define CLONE_VM	     0x00000100u
#define CLONE_SIGHAND	     0x00000800u
#define CLONE_VFORK	     0x00004000u
#define CLONE_THREAD	     0x00010000u
#define CLONE_PARENT_SETTID  0x00100000u
#define CLONE_CHILD_CLEARTID 0x00200000u
#define CLONE_CHILD_SETTID   0x01000000u

/* What clone is asked for. Addresses are ring 3's. */
struct fork_request {
	uint32_t flags;
	uint32_t stack; /* 0: as the parent's */
	uint32_t parent_word, child_word;
};

/*
 * Makes a child of the current task: the same program at the same place, where it finds 0 in eax.
 * With CLONE_VFORK and CLONE_VM it uses its parent's memory, and the parent sleeps until the child
 * ends or calls exec. Returns its pid, -EAGAIN when there are too many tasks, -ENOMEM, or -EINVAL
 * for what only threads need.
 */
int task_fork(const struct fork_request *request);

/* The first thing that a child does. */
void task_forked(void);

/* Options of wait4. */
#define WAIT_NOHANG    0x00000001u
#define WAIT_UNTRACED  0x00000002u
#define WAIT_EXITED    0x00000004u /* waitid's own */
#define WAIT_CONTINUED 0x00000008u
#define WAIT_KEEP      0x01000000u /* waitid's own: the news stays news */
#define WAIT_THREADS   0xe0000000u /* concern threads only */

#define WAIT_STATUS_GOES_ON 0xffff

struct wait_news {
	int32_t status; /* as wait4 tells it */
	uint32_t user_ticks, system_ticks;
};

/*
 * Waits for news of children: all of them (which = -1), one pid (> 0), the own group's (0), or
 * another group's (< -1). A child that has ended is gone after that. Returns the child's pid, 0
 * with WAIT_NOHANG when there are none yet, -ECHILD without such children, -EINVAL, or -ERESTART.
 */
int task_wait(int32_t which, uint32_t options, struct wait_news *news);

/* The same for waitid, which says whether it wants to know of ends, and can leave the news. */
int task_wait_id(int32_t which, uint32_t options, struct wait_news *news);

/* Tells the parent with SIGCHLD, and wakes it if it waits. code is one of CLD_... From any context.
 */
void task_notify_parent(struct task *task, int32_t code, int32_t status);

/* Who copies and closes open files, and who is told when a task or the first program ends. */
struct task_hooks {
	struct files *(*files_copy)(const struct files *files); /* NULL without memory */
	void (*files_destroy)(struct files *files);		/* may sleep */
	void (*leave_terminal)(void);				/* the current task ends */
	void (*init_ended)(int32_t status);			/* does not return */
};

void task_register_hooks(const struct task_hooks *hooks);
