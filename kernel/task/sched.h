/*
 * The scheduler: which task gets the processor next.
 *
 * What is common to all policies is in kernel/task/sched.c; a policy is a struct sched_class
 * (kernel/task/sched_class.h), and all tasks are under the same one at a time.
 * kernel/task/sched_preempt.c decides when a task is pre-empted.
 */
#pragma once

#include "kernel/task/sched_class.h"

/* The class in use. */
extern const struct sched_class *sched_class;

/* Puts all tasks under the class of this name: "rr", "mlfq" or "fair". Returns 0 or -EINVAL. */
int sched_use(const char *name);

/* Makes its caller the idle task, pid 0. */
void sched_initialize(void);

/* Gives the processor to the next task. Interrupts must be disabled, and still are when it returns.
 * If current->life is TASK_READY, the task remains runnable. */
void schedule(enum sched_reason reason);

/* Sleeps in this state of life until sched_wake. Interrupts must be disabled. */
void sched_sleep(enum task_life life);

/* Makes a new task runnable. */
void sched_begin(struct task *task);

/* Wakes a task that sleeps, whatever it sleeps for; others are left alone. From any context. */
void sched_wake(struct task *task);

/* Lets a stopped task go on. From any context. */
void sched_continue(struct task *task);

/* Lets other tasks of the same priority run first. */
void yield(void);

/* Changes how nice a task is: -20 to 19. */
void sched_set_nice(struct task *task, int nice);

/* Sets the priority that others lend to a task (less is higher), or PRIORITY_NONE. Interrupts must
 * be disabled. */
void sched_donate(struct task *task, int priority);

/* At a tick: charges the current task. Is its turn over, and does another one wait? */
bool sched_turn_is_over(void);

/* ---- pre-emption: kernel/task/sched_preempt.c ---- */

/* The idle task's loop. */
void sched_idle(void) __attribute__((noreturn));

/* Notes a tick; the rest is done at the end of this interrupt. For the timer's handler. */
void sched_tick(void);

/* Does the pending work (the bits of trap_return_work) before a trap returns. It is called with the
 * trap's frame and with interrupts disabled, and may run other tasks meanwhile. For trap_do_work.
 */
void sched_work(struct trap_frame *frame);

/* The part of it that comes before user mode, for tasks that get there without a trap. */
void task_before_user(struct trap_frame *frame);

/* Called when the current task is about to return to user mode and WORK_SIGNAL is set:
 * kernel/process decides what signals do. */
extern void (*deliver_signals)(struct trap_frame *frame);

/* Code of a kernel thread between these two keeps the processor, unless it sleeps. They nest. The
 * interrupt of a tick looks at the count: the compiler may move no access to memory across it. */
static inline void preempt_disable(void)
{
	current->schedule.preempt_count++;
	__asm__ volatile("" : : : "memory");
}

void preempt_enable(void);

/* Gives up the processor, if this is a kernel thread that can be pre-empted. */
void sched_preempt(void);

/* Calls it if a task of higher priority was woken. Interrupts must be enabled. */
static inline void preempt_check(void)
{
	if (trap_return_work & WORK_SCHEDULE)
		sched_preempt();
}

/* ---- kernel threads: kernel/task/thread.c ---- */

/* A new kernel thread, which calls function(argument) and ends when that returns. It may be
 * pre-empted at any instruction: it may use the scheduler, waiting, locks, timers and printk, and
 * everything else between preempt_disable and preempt_enable. NULL without memory. The interrupt
 * flag stays as it is. */
struct task *kthread_create(const char *name, void (*function)(void *argument), void *argument);

/* Ends the current kernel thread. */
void kthread_exit(void) __attribute__((noreturn));

/* ---- a record of every task switch, for the host to read ---- */

#define SCHED_RECORDS 4096u /* a power of two */

struct sched_record {
	uint64_t stamp;	  /* of the time-stamp counter */
	int16_t from, to; /* pids, their low halves */
	uint8_t reason;	  /* enum sched_reason: why `from` gave up the processor */
};

struct sched_trace {
	uint32_t total; /* records since boot; record n is at ring[n % SCHED_RECORDS] */
	uint32_t padding;
	struct sched_record ring[SCHED_RECORDS];
};

extern struct sched_trace sched_trace;
