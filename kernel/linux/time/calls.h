/* Shared by the system calls about time and those about tasks. */
#pragma once

#include <stdint.h>

#include "kernel/abi/clocks.h"

/* What getrusage and wait4 tell of ticks in user mode and in the kernel. */
struct linux_usage usage_of_ticks(uint32_t user, uint32_t system);

struct process;
struct task;

/* Processor time: TSC cycles, and ticks of the timer. */
struct use {
	uint64_t cycles;
	uint32_t user_ticks, system_ticks;
};

/* Adds what a task has used. */
void use_add(struct use *sum, const struct task *task);

/* What a program's tasks had used that have ended before it. NULL: every program is one task. */
extern struct use (*use_of_ended)(const struct process *leader);
