/*
 * Waiting as long as there is only one task: the processor halts until an interrupt, and the caller
 * checks again (wait_event's loop). What a task waits for can only come from an interrupt handler
 * then: a key, or the time.
 *
 * No task has to be woken, because none sleeps: a queue stays empty. From lesson 4 on
 * kernel/task/wait.c takes the place of this file, with the same header.
 */
#include "kernel/lib/errno.h"
#include "kernel/task/task.h"
#include "kernel/task/time.h"
#include "kernel/task/wait.h"

/* Interrupts are disabled. STI takes effect after the next instruction: no interrupt comes between
 * it and HLT. */
static void halt(void)
{
	__asm__ volatile("sti; hlt; cli" : : : "memory");
}

/* Returns after any interrupt: the caller checks its condition again. */
int wait_sleep_until(struct wait_queue *queue, uint64_t deadline_ns)
{
	if (current->has_signal)
		return -ERESTART;
	if (time_ns() >= deadline_ns)
		return -ETIMEDOUT;
	halt();
	return 0;
}

/* The same; no signal ends it. */
void wait_sleep_blocked(struct wait_queue *queue)
{
	halt();
}

/* Nothing to do: the task that waits checks again after each interrupt. */
void wait_wake(struct wait_queue *queue)
{
}
