/*
 * A task: something that competes for the processor. It has a stack in the kernel; if it runs a
 * program, it also has an address space and a process (kernel/process/process.h), else it is a
 * kernel thread.
 *
 * What is here is what scheduling, waiting and locks need to know. Until lesson 4 there is one task
 * at a time (kernel/process/single.c); from then on kernel/task/task.c makes many.
 *
 * There is one processor, and in the kernel a task that runs a program gives it up only when it
 * sleeps, yields, or returns to user mode: kernel data that no interrupt handler uses needs no
 * lock.
 */
#pragma once

#include "kernel/cpu/descriptors.h"
#include "kernel/cpu/fpu.h"
#include "kernel/cpu/trap.h"
#include "kernel/lib/list.h"

struct mutex;
struct process;
struct space;

#define TASK_NAME  16
#define TASK_LIMIT 256 /* tasks at a time, zombies and kernel threads included */

enum task_life {
	TASK_READY,    /* runs, or waits for the processor */
	TASK_SLEEPING, /* until it is woken, or a signal comes */
	TASK_BLOCKED,  /* until it is woken; signals wait */
	TASK_STOPPED,  /* by a signal, until SIGCONT */
	TASK_ZOMBIE,   /* has ended; its parent has not fetched its status yet */
};

/* Work to do before a trap returns: bits of trap_return_work. */
#define WORK_TICK     1u
#define WORK_SCHEDULE 2u
#define WORK_SIGNAL   4u

#define PRIORITY_NONE INT8_MAX /* no priority is lent */

/* What the scheduler knows of a task: kernel/task/sched.c and its classes. */
struct task_schedule {
	struct list in_queue;	/* linked while it waits for the processor */
	bool is_queued;		/* in its class's queue: kernel/task/sched.c keeps it up to date */
	int8_t nice;		/* -20 (much) to 19 (little) */
	int8_t donated;		/* a priority that a waiting task lends, or PRIORITY_NONE */
	uint8_t level;		/* multi-level feedback: 0 is served first */
	uint32_t quantum;	/* round robin: ticks that are left of its turn */
	int64_t left;		/* multi-level feedback: TSC cycles that are left at this level */
	uint64_t virtual_time;	/* fair: weighted; it wraps around */
	uint64_t started;	/* the TSC when it was last charged */
	uint64_t total;		/* TSC cycles of processor time since it began */
	uint32_t preempt_count; /* a kernel thread with 0 may be pre-empted by the tick */
};

/* What else is counted of a task, for getrusage: page faults without and with a read of a disk, and
 * blocks of 512 bytes that it reads from disks, or makes dirty. The rest is of a program, when it
 * has ended (kernel/linux/process/usage.c). */
struct task_counts {
	uint32_t minor_faults, major_faults, blocks_in, blocks_out, waits, preemptions, most_pages;
};

struct task {
	uint32_t esp; /* in the kernel, while others run. The first field: kernel/task/switch.asm */
	int32_t pid;
	char name[TASK_NAME]; /* the program's name, truncated */
	enum task_life life;
	struct list in_all; /* every task, in the order in which they began */

	/* A program's state in the processor: loaded by task_load. */
	struct trap_frame *frame; /* its registers, on the kernel stack while it is in the kernel */
	struct thread_segments thread_local; /* segments that gs and fs select */
	struct fpu_state fpu;		     /* current unless the task's state is in the unit */
	struct space *space; /* NULL: a kernel thread, or a program that has ended */
	void *kernel_stack;  /* owned: its lowest address */

	struct process *process; /* NULL: a kernel thread */
	/* There is a signal to act upon: TASK_SLEEPING ends, and the next return to user mode
	 * delivers it. kernel/process keeps this up to date. */
	bool has_signal;

	/* Time, in ticks; how often it got the processor, and was pre-empted. */
	uint32_t user_ticks, system_ticks, switches, preemptions;
	uint64_t begun_ns;

	struct task_schedule schedule;

	/* Locks: kernel/task/lock.c. */
	struct mutex *held, *waiting; /* linked by mutex->next_held; the one that it waits for */

	struct task_counts counts;
};

/* The task that has the processor. Never NULL after the first task was made. */
extern struct task *current;

/* How many tasks there are, zombies included, without the idle task. */
extern uint32_t task_count;

/* Every task, in the order in which they began: the first for NULL, NULL after the last. The list
 * may change whenever the caller sleeps. */
struct task *task_next(const struct task *task);

/* The task of this pid, or NULL. */
struct task *task_find(int32_t pid);
