/* The use that programs make of the machine, for the calls about time and those about tasks. */
#pragma once

#include <stdint.h>

#include "kernel/abi/clocks.h"

/* What getrusage and wait4 tell of ticks in user mode and in the kernel, and of what was counted
 * (kernel/task/task.h). */
struct linux_usage usage_of(uint32_t user, uint32_t system, const uint32_t *counts);

struct process;
struct task;

/* Add to a sum what other tasks have counted, and what one task has, its switches too. */
void counts_add(uint32_t *sum, const uint32_t *more);
void counts_add_task(uint32_t *sum, const struct task *task);

/* Processor time: TSC cycles, and ticks of the timer. */
struct use {
	uint64_t cycles;
	uint32_t user_ticks, system_ticks;
};

/* Adds what a task has used. */
void use_add(struct use *sum, const struct task *task);

/* What a program's tasks have used, also those that have ended; and what a task has alone. */
struct use use_of_program(const struct process *leader);
struct use use_of_task(const struct task *task);

/* What a program's tasks had used that have ended before it. NULL: every program is one task. */
extern struct use (*use_of_ended)(const struct process *leader);
