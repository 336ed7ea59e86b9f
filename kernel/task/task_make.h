/*
 * Making, loading and freeing tasks: for the scheduler and for code that makes tasks
 * (kernel/task/thread.c and kernel/process).
 */
#pragma once

#include <stdbool.h>

struct space;
struct task;

/* ---- kernel/task/task.c ---- */

/* A new task, in no queue and without a process. The first one is pid 1. Owns a kernel stack, at
 * whose top is its trap frame. After the task, up to TASK_SIZE bytes, there is room for its
 * process, zero at first. NULL without memory or when there are too many. */
#define TASK_SIZE 3072u
struct task *task_create(const char *name);

/* Frees a task that has no space any more, and never runs again. */
void task_free(struct task *task);

/* The current task is about to give up the processor for good: task_switched will free its stack,
 * and with is_orphan the task itself. Interrupts must be disabled. */
void task_retire(bool is_orphan);

/* Called by every task right after it has got the processor, with interrupts disabled: frees what a
 * task that has ended could not free itself. */
void task_switched(void);

/* ---- kernel/task/task_load.c ---- */

/* Loads what a task needs in user mode: its stack in the kernel, its space, its segment, its
 * floating-point unit. Only what differs. Interrupts are disabled. */
void task_load(struct task *next);

/* Saves the task's floating-point state to task->fpu, if the unit holds a newer one. */
void task_save_fpu(struct task *task);

/* Takes the current task's space and floating-point state away from it. Returns the space, which
 * then belongs to the caller. Interrupts must be disabled. */
struct space *task_unload(void);

/* ---- kernel/task/thread.c ---- */

/* Ends the current task for ever: its stack is freed, and with is_orphan the task itself. */
void task_bury(bool is_orphan) __attribute__((noreturn));
