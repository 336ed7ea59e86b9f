/* The use that programs make of the machine, for the calls about time and those about tasks. */
#pragma once

#include "kernel/abi/clocks.h"
#include "kernel/process/family.h"

/* Processor time, in TSC cycles and in ticks of the timer; and what else is counted. */
struct use {
	uint64_t cycles;
	uint32_t user_ticks, system_ticks;
	struct task_counts counts;
};

/* Adds what a task has used. */
void use_add(struct use *sum, const struct task *task);

/* What a program's tasks have used, also those that have ended; and what a task has alone. */
struct use use_of_program(const struct process *leader);
struct use use_of_task(const struct task *task);

/* What a program's tasks had used that have ended before it; their ticks are the leader's, too. */
const struct use *use_of_ended(const struct process *leader) OPTIONAL;

/* Starts to check the limits of processor time, and the timers that count it, in every tick: from
 * lesson 4 on, where ticks are charged to tasks. */
void watch_processor_time(void) OPTIONAL;

/* The current task ends its program, whose other tasks had used this; its space is still there. */
void usage_end(const struct use *ended);
