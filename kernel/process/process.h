/*
 * A process: a task's program and what belongs to it. Files, family, signals; and how it begins,
 * ends, and is asked for its end.
 *
 * There is one task to a process. `current->process` is NULL in a kernel thread; the kernel thread
 * that starts a program gets one first (process_create). Only the process itself and its parent
 * change what is here, but for the signals, which come from any context.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/abi/signal.h"
#include "kernel/abi/wait.h"
#include "kernel/task/task.h"
#include "kernel/task/timer.h"
#include "kernel/task/wait.h"

struct files;

/* Pending and blocked signals, and their actions: kernel/process/signal.h. */
struct process_signals {
	uint64_t pending, blocked; /* bit n - 1 is signal n */
	uint64_t awaited;	   /* by sigtimedwait, though they are blocked */
	uint64_t saved;		   /* what was blocked before sigsuspend, while is_suspended */
	bool is_suspended;
	uint64_t resume_ns; /* the end of an interrupted sleep that is begun again; or 0 */
	struct linux_signal_stack stack;
	struct linux_signal_action actions[SIGNALS];
	struct signal_cause causes[SIGNALS];
	struct queued_signal *queue; /* of those that are pending a second time (kernel/linux) */
};

struct process {
	struct task *task;
	struct files *files; /* owned */
	/* Where the program found its arguments, its environment, and the end of both. */
	uint32_t arguments, environment, strings_end;

	/* The family. */
	struct process *parent; /* NULL: the first program, or one that the kernel started */
	int32_t pgrp, session;	/* pids of their leaders */
	uint32_t tty;		/* device number of the controlling terminal; 0: none */
	int32_t exit_signal;	/* for the parent when this one ends; 0: none */
	int32_t status;		/* as wait4 tells it */
	bool has_stopped, has_continued; /* news that the parent has not fetched */
	bool is_borrowing;		 /* uses the space of its parent, which waits (vfork) */
	bool adopts;			 /* orphans below it, in place of init (prctl) */
	struct wait_queue children;	 /* wakes when a child has news, or gives the space back */
	uint32_t set_at_begin;		 /* user address of a word that gets the pid; 0: none */
	uint32_t clear_on_exit;		 /* of a word to zero at the end; 0: none */

	uint32_t children_user_ticks, children_system_ticks; /* of those that were waited for */
	struct timer alarm;				     /* sends SIGALRM */
	uint64_t alarm_interval; /* nanoseconds until the next one; 0: none */

	struct process_signals signals;
};

/* Every process, by age: the first for NULL, NULL after the last. The list may change whenever the
 * caller sleeps. */
struct process *process_next(const struct process *process);

/* The process of this pid, or NULL. */
struct process *process_find(int32_t pid);

/* The process that a call's argument names: 0 is the current one; NULL: there is no such program.
 */
struct process *process_of_call(int32_t pid);

/* Does it run a program, or has it ended as one? */
static inline bool process_is_program(const struct process *process)
{
	return process->task->space || process->task->life == TASK_ZOMBIE;
}

/* Ends the current task. status is as wait4 tells it: an exit code << 8, or a signal's number. */
void process_exit(int32_t status) __attribute__((noreturn));

/* ---- for exec ---- */

/* Gives the current task an empty space of its own, which the processor sees then. That is the old
 * one, cleared; or a new one, if it had none, or only a borrowed one (vfork). Returns 0, or
 * -ENOMEM, and nothing has changed: so this is the point of no return. */
int process_empty_space(void);

/* Signals, the thread-local segment and the floating-point unit become as a new program finds them.
 */
void process_reset_for_exec(void);

/* ---- from lesson 4 on ---- */

/* Makes a process for a task that has none, in a group and a session of its own. It is freed with
 * the task. */
struct process *process_create(struct task *task);

/* Takes the current task's space away: a borrowed one goes back to the parent, another one is
 * destroyed. Interrupts must be off. */
void process_leave_space(void);

/* Goes to user mode for the first time, as the frame says. */
void program_enter(struct trap_frame *frame) __attribute__((noreturn));

/* Where a forked program's task gets the processor for the first time:
 * kernel/process/program_entry.asm. */
void program_begin(void);

/* The first thing that a child does. */
void process_forked(void);

/* Flags of clone that are understood; the lowest byte is the signal at the child's end. */
#define CLONE_SIGNAL_MASK    0x000000ffu
#define CLONE_VM	     0x00000100u
#define CLONE_SIGHAND	     0x00000800u
#define CLONE_VFORK	     0x00004000u
#define CLONE_THREAD	     0x00010000u
#define CLONE_PARENT_SETTID  0x00100000u
#define CLONE_CHILD_CLEARTID 0x00200000u
#define CLONE_CHILD_SETTID   0x01000000u

/* What clone is asked for. Addresses are user addresses. */
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
int process_fork(const struct fork_request *request);

#define PRCTL_SET_SUBREAPER 36 /* prctl: sets struct process's `adopts` */

/* Options of wait4. */
#define WAIT_THREADS 0xe0000000u				       /* concern threads only */
#define WAIT_OPTIONS (WNOHANG | WUNTRACED | WCONTINUED | WAIT_THREADS) /* of wait4 */

#define WAIT_STATUS_GOES_ON 0xffff

struct wait_news {
	int32_t status; /* as wait4 tells it */
	uint32_t user_ticks, system_ticks;
};

/*
 * Waits for news of children: all of them (which = -1), one pid (> 0), the own group's (0), or
 * another group's (< -1). A child that has ended is gone after that. Returns the child's pid, 0
 * with WNOHANG when there are none yet, -ECHILD without such children, -EINVAL, or -ERESTART.
 */
int process_wait(int32_t which, uint32_t options, struct wait_news *news);

/* Is this one of the current task's children that `which` means? */
bool process_is_meant(const struct process *child, int32_t which);

/* Fetches a child's news without freeing it. */
void process_fetch(struct process *child, struct wait_news *news);

/* Tells the parent with SIGCHLD, and wakes it if it waits. code is one of CLD_... From any context.
 */
void process_notify_parent(struct process *process, int32_t code, int32_t status);

/* Has no member of the process's group a parent in another group of the session, who could continue
 * it? Such a group is not stopped by the terminal. */
bool process_group_is_orphaned(const struct process *member);
