/* The kernel stacks of tasks: in a region of their own, with unmapped guard pages below each. */
#pragma once

#include <stdint.h>

#define KERNEL_STACK_SIZE 8192u
#define KERNEL_STACKS	  256 /* at a time */

/* Adds the region to the kernel's page directory. From now on the report of a double fault says so
 * if a stack has overflowed. Call it before the first address space is made. */
void kernel_stack_initialize(void);

/* Returns the lowest address of a stack, or NULL without memory or when there are too many. */
void *kernel_stack_create(void);

/* Gives a stack back. It must not be the one in use. */
void kernel_stack_destroy(void *stack);
