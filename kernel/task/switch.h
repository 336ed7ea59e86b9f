/* What happens around a switch of tasks; between kernel/task/sched.c, kernel/task/switch.asm and
 * the makers of tasks. */
#pragma once

#include "kernel/task/task.h"

/* Where the first switch_to of a new task returns to: in kernel/task/switch.asm. */
void thread_begin(void);
void program_begin(void);

/* What switch_to keeps on the stack of a task that does not run. */
struct switch_frame {
	uint32_t edi, esi, ebx, ebp;
	void (*resume)(void);
};

/* Makes room for the stacks of tasks. Before the first address space. */
void task_initialize(void);

/* A new task, in no queue and without a family. The first one is pid 1. Owns a kernel stack, at
 * whose top is its trap frame. NULL without memory or when there are too many. */
struct task *task_create(const char *name);

/* Frees a task that has neither space nor files any more, and leaves its stack to task_switched. */
void task_free(struct task *task);

/* Loads what ring 3 will find of a task: its stack in the kernel, its space, its segment, its
 * floating-point unit. Only what differs. Interrupts are off. */
void task_load(struct task *next);

/* Called by every task right after it has got the processor, with interrupts off: frees what a task
 * that has ended could not free itself. */
void task_switched(void);

/* The current task has ended, for ever: its stack is freed, and with is_orphan the task itself. */
void task_bury(bool is_orphan) __attribute__((noreturn));

/* The current task is without a space then: a borrowed one goes back, another one is destroyed. */
void task_leave_space(void);

/* Makes sure that task->fpu is what the task has in the unit. */
void task_save_fpu(struct task *task);

/* Does all work that waits before ring 3; with interrupts off. */
void task_before_user(struct trap_frame *frame);

/* Goes to ring 3 for the first time, as the frame says. */
void task_enter_user(struct trap_frame *frame) __attribute__((noreturn));

/* How many tasks there are, zombies included, without the idle task. */
extern uint32_t task_count;
