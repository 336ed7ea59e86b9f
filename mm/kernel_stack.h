/* The stacks of tasks in the kernel: in a region of their own, with unmapped pages below each. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define KERNEL_STACK_SIZE 8192u
#define KERNEL_STACKS	  256 /* at a time */

/* Adds the region to the kernel's page directory. Before the first address space is made. */
void kernel_stack_initialize(void);

/* Returns the lowest address of a stack, or NULL without memory or when there are too many. */
void *kernel_stack_create(void);

/* Gives a stack back. It must not be the one in use. */
void kernel_stack_destroy(void *stack);

/* Is the address below a stack, so that the task that used it had no stack left? */
bool kernel_stack_is_guard(uint32_t address);
