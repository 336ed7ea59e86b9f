/*
 * Claims: locks for what one task at a time uses, and may sleep meanwhile. A zeroed claim is free.
 *
 * Unlike a mutex (kernel/task/lock.h) a claim lends no priority: it is for short work, such as a
 * copy. For tasks that run programs, which cannot be pre-empted in the kernel.
 */
#pragma once

#include "kernel/task/wait.h"

struct claim {
	bool is_taken;
	struct wait_queue waiting;
};

/* Sleeps, whatever signals come, while another task has it. Only tasks take it, and none runs
 * between the last check and the claim. Its callers need few instructions while it is free. */
static __attribute__((noinline, unused)) void claim_wait(struct claim *claim)
{
	bool enabled = interrupts_disable();

	while (claim->is_taken)
		wait_sleep_blocked(&claim->waiting);
	interrupts_restore(enabled);
}

static inline void claim_take(struct claim *claim)
{
	if (claim->is_taken)
		claim_wait(claim);
	claim->is_taken = true;
}

static inline void claim_give(struct claim *claim)
{
	claim->is_taken = false;
	if (claim->waiting.first)
		wait_wake(&claim->waiting);
}
