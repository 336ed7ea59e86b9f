/*
 * A task: a program that runs, with its memory, its open files, and its stack in the kernel; or a
 * thread of the kernel, which has the stack only.
 *
 * Until lesson 4 there is one at a time (kernel/process/single.c); from then on kernel/task/task.c
 * makes many. There is one processor, and a task gives it away only when it sleeps, yields, or goes
 * back to ring 3: so what is not used by interrupt handlers needs no lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/abi/signal.h"
#include "kernel/cpu/fpu.h"
#include "kernel/lib/list.h"
#include "kernel/task/timer.h"
#include "kernel/cpu/trap.h"
#include "kernel/task/wait.h"

struct space;
struct files;
struct mutex;
struct task;

#define TASK_NAME  16
#define TASK_LIMIT 256 /* tasks at a time, with zombies and the kernel's own */

enum task_life {
	TASK_READY,    /* runs, or waits for the processor */
	TASK_SLEEPING, /* until it is woken, or a signal comes */
	TASK_BLOCKED,  /* until it is woken; signals wait */
	TASK_STOPPED,  /* by a signal, until SIGCONT */
	TASK_ZOMBIE,   /* has ended; its parent has not asked yet */
};

/* What the scheduler knows of a task: kernel/task/sched.c and its classes. */
struct task_schedule {
	struct list in_queue; /* linked while it waits for the processor */
	bool is_queued;
	int8_t nice;		/* -20 (much) to 19 (little) */
	int8_t donated;		/* the urgency of whoever waits for it, or URGENCY_NONE */
	uint8_t level;		/* multi-level feedback: 0 is served first */
	uint32_t quantum;	/* round robin: ticks that are left of its turn */
	int64_t left;		/* multi-level feedback: stamps of processor time at this level */
	uint64_t virtual_time;	/* fair: weighted; it wraps around */
	uint64_t started;	/* the stamp when it was last charged */
	uint64_t total;		/* stamps of processor time since it began */
	uint32_t preempt_count; /* a kernel thread with 0 may be pre-empted by the tick */
};

/* What waits for a task, and what it does then: kernel/process/task_signal.c,
 * kernel/process/signal.c. */
struct task_signals {
	uint64_t pending, blocked; /* bit n - 1 is signal n */
	uint64_t awaited;	   /* by sigtimedwait, though they are blocked */
	uint64_t saved;		   /* what was blocked before sigsuspend, while is_suspended */
	bool is_suspended;
	uint64_t resume_ns; /* the end of an interrupted sleep that is begun again; or 0 */
	struct linux_signal_stack stack;
	struct linux_signal_action actions[SIGNALS];
	struct signal_cause causes[SIGNALS];
	struct queued_signal *queue; /* of signals that are pending a second time */
};

struct task {
	uint32_t esp; /* in the kernel, while others run. The first field: kernel/task/switch.asm */
	int32_t pid;
	char name[TASK_NAME]; /* of the program, cut */
	enum task_life life;
	struct list in_all; /* every task, in the order in which they began */

	/* The processor's state in ring 3. */
	struct trap_frame *frame; /* on the kernel's stack while the task is in the kernel */
	uint64_t thread_local;	  /* the descriptor behind gs, packed; 0: none */
	struct fpu_state fpu;	  /* while no others have used the unit since */

	struct space *space; /* owned, unless is_borrowing; NULL: a kernel thread */
	struct files *files; /* owned; NULL: a kernel thread */
	void *kernel_stack;  /* owned: its lowest address */
	/* Where the program found its arguments, its environment, and what is behind them. */
	uint32_t arguments, environment, strings_end;

	/* The family: kernel/process/family.c. */
	struct task *parent;		 /* NULL: a kernel thread, or the first program */
	int32_t pgrp, session;		 /* pids of their leaders */
	uint32_t tty;			 /* device number of the controlling terminal; 0: none */
	int32_t exit_signal;		 /* for the parent when this one ends; 0: none */
	int32_t status;			 /* as wait4 tells it */
	bool has_stopped, has_continued; /* news that the parent has not fetched */
	bool is_borrowing;		 /* uses the space of its parent, which waits (vfork) */
	bool adopts;			 /* orphans below it, in place of init (prctl) */
	bool has_called_exec;		 /* since it began: its parent may not change its group */
	struct wait_queue children;	 /* wakes when a child has news, or gives the space back */
	uint32_t set_at_begin;	/* address in ring 3 of a word that gets the pid; 0: none */
	uint32_t clear_on_exit; /* of a word to zero at the end; 0: none */

	/* Time, in ticks: in ring 3, in the kernel; of children that were waited for; and alarms.
	 */
	uint32_t user_ticks, system_ticks, children_user_ticks, children_system_ticks;
	uint32_t switches, preemptions;
	uint64_t begun_ns;
	struct timer alarm;	 /* sends SIGALRM */
	uint64_t alarm_interval; /* nanoseconds until the next one; 0: none */

	struct task_schedule schedule;
	struct task_signals signals;

	/* Locks: kernel/task/lock.c. */
	struct mutex *held;    /* linked by mutex->next_held */
	struct mutex *waiting; /* the one that it waits for */
};

/* The task that the processor is working for. Never NULL once tasks are there. */
extern struct task *current;

/* Ends the current task. status is as wait4 tells it: an exit code << 8, or a signal's number. */
void task_exit(int32_t status) __attribute__((noreturn));

/* Every task, in the order in which they began: the first for NULL, NULL after the last. The list
 * may change whenever the caller sleeps. */
struct task *task_next(const struct task *task);

/* The task of this pid, or NULL. */
struct task *task_find(int32_t pid);

/*
 * Sends a signal (1 to 64): it is pending from now on, and the task wakes if it does not block it.
 * From any context. cause may be NULL: the kernel.
 */
void task_signal_cause(struct task *task, int signal, const struct signal_cause *cause);
void task_signal(struct task *task, int signal);

/* Sends a signal to each task of a process group. Returns how many there were. */
unsigned task_signal_group(int32_t pgrp, int signal);

/* Does the current task have a signal to act upon? */
bool task_signal_pending(void);

/* Would this signal do nothing to the task, because it ignores or blocks it? (A terminal asks this
 * for SIGTTIN and SIGTTOU.) */
bool task_signal_ignored(const struct task *task, int signal);

/* Has no member of the task's process group a parent in another group of the session, who could
 * continue it? Such a group is not stopped by the terminal. */
bool task_group_is_orphaned(const struct task *member);

/* For exec: gives the current task an empty space of its own, which the processor sees then. That
 * is the old one, cleared; or a new one, if it had none, or only a borrowed one (vfork). Returns 0,
 * or -ENOMEM, and nothing has changed: so this is the point of no return. */
int task_empty_space(void);

/* For exec: signals, the thread-local segment and the floating-point unit become as a new program
 * finds them. */
void task_reset_for_exec(void);
