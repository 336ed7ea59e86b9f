/*
 * A process: a task's program, with its files, its family and its signals. How one begins as the
 * copy of another, and what its parent learns, is in kernel/process/family.h.
 *
 * A process has one task. `current->process` is NULL in a kernel thread; the kernel thread
 * that starts a program gets one first (process_create). Only the process itself and its parent
 * change this structure, except for the signals, which come from any context.
 *
 * Several processes may be one program to all others (threads, if a module makes them). The first
 * one is their leader: it has the pid, the parent and the children of all, it owns their space and
 * files, and it ends last.
 */
#pragma once

#include "kernel/abi/signal.h"
#include "kernel/task/task.h"
#include "kernel/task/timer.h"
#include "kernel/task/claim.h"

struct files;

/* Pending and blocked signals, and their actions: kernel/process/signal.h. */
struct process_signals {
	uint64_t pending, blocked; /* bit n - 1 is signal n */
	/* By sigtimedwait, though they are blocked; what was blocked before sigsuspend, while
	 * is_suspended. */
	uint64_t awaited, saved;
	bool is_suspended;
	uint64_t resume_ns; /* when an interrupted sleep that is restarted ends; or 0 */
	struct linux_signal_stack stack;
	struct linux_signal_action *actions, own[SIGNALS]; /* own, or those of the leader */
	struct signal_cause causes[SIGNALS];
	struct queued_signal *queue; /* signals that are pending more than once (kernel/linux) */
};

struct process {
	struct task *task;
	struct process *leader; /* of several processes that are one program; or itself */
	struct files *files;	/* owned by the leader */
	/* Where the program's arguments and environment begin, and where both end. */
	uint32_t arguments, environment, strings_end;

	/* The family. */
	struct process *parent;	    /* NULL: the first program, or one that the kernel started */
	int32_t pgrp, session;	    /* pids of their leaders */
	uint32_t tty;		    /* device number of the controlling terminal; 0: none */
	int32_t exit_signal;	    /* sent to the parent when this process ends; 0: none */
	uint32_t waits_for;	    /* WAIT_CLONES, WAIT_ALL, of its wait that is under way */
	int32_t death_signal;	    /* sent to it when its parent ends; 0: none (prctl) */
	int32_t status;		    /* as wait4 tells it */
	int32_t stop_status;	    /* of a leader: the same, while its program is stopped; or 0 */
	struct claim setting_break; /* of the leader: brk is under way */
	bool has_stopped, has_continued; /* news that the parent has not fetched */
	bool is_borrowing;		 /* uses the space of its parent, which waits (vfork) */
	bool adopts;			 /* orphans below it, in place of init (prctl) */
	struct wait_queue children;	 /* wakes when a child has news, or gives the space back */
	/* User addresses of two words: one gets the pid, one becomes 0 at the end. 0: none. */
	uint32_t set_at_begin, clear_on_exit;

	uint32_t children_user_ticks, children_system_ticks; /* of those that were waited for */
	struct timer alarm;				     /* sends SIGALRM */
	/* Nanoseconds until the next one, 0: none; setitimer's timers of processor time:
	 * kernel/linux/time/calls.c. */
	uint64_t alarm_interval, tick_timers[2][2];

	struct process_signals signals;

	/* Of those that were waited for; and when it has ended, its own as well. */
	struct task_counts children_counts;
};

/* Ends the current task, and frees its space and files: no other task may share them any more
 * (program_finish in family.h). Code that refuses what a program did sends it a signal instead.
 * status is as wait4 tells it: an exit code << 8, or a signal's number. */
void process_exit(int32_t status) __attribute__((noreturn));

/* Called before the current task ends, or its program does (`all`), with its wait status, or before
 * the program is replaced (exec), with PROGRAM_REPLACED. Ends the program's other tasks if the
 * program ends. Returns the status to end with; for exec 0 or a negated errno. May sleep. A kernel
 * without it has one task for each program. */
int32_t program_finish(int32_t status, bool all) OPTIONAL;

/* brk with the limits of a program: calls space_set_break if they allow it. */
uint32_t program_set_break(uint32_t address) OPTIONAL;

/* ---- for exec ---- */

/* Gives the current task an empty space of its own, and loads it. That is the old one, cleared; or
 * a new one, if it had none, or only a borrowed one (vfork). Returns 0; or -ENOMEM, and nothing has
 * changed. So this is the point of no return. */
int process_empty_space(void);

/* Signals, the thread-local segment and the floating-point unit become as a new program finds them.
 */
void process_reset_for_exec(void);
