/* User memory, seen from the kernel: never trusted, always through these functions. */
#pragma once

#include <stdint.h>

#include "kernel/lib/errno.h"

/* Registers the exception table's handler. Call it before the first of these functions. */
void user_copy_initialize(void);

/* Is [address, address + length) wholly below the kernel, without wrapping? An empty range
 * may begin anywhere up to KERNEL_BASE. Says nothing about what is mapped there. */
bool user_range_ok(uint32_t address, uint32_t length);

/* Copy between the kernel and the current task's memory. Return how many bytes at the end could
 * not be copied: 0 is success. What comes before the first bad byte has been copied, and nothing
 * else has changed. */
uint32_t copy_from_user(void *to, uint32_t from, uint32_t length);
uint32_t copy_to_user(uint32_t to, const void *from, uint32_t length);

/* Copies to the current task's memory, for a system call's result: 0, or -EFAULT when not all of it
 * could be copied. */
static inline int give(uint32_t to, const void *from, uint32_t length)
{
	return copy_to_user(to, from, length) == 0 ? 0 : -EFAULT;
}

/* Zeroes the current task's memory. Returns as the two above do. */
uint32_t clear_user(uint32_t to, uint32_t length);

/* Copies a string with its NUL, at most size bytes (at least 1). Returns its length without the
 * NUL, -EFAULT, or -ENAMETOOLONG when there is no NUL in the first size bytes. Reads nothing after
 * the NUL. */
int string_from_user(char *to, uint32_t from, uint32_t size);

/* The source or the destination of a file operation: in the kernel's memory or in the current
 * task's. */
struct buffer {
	uintptr_t address; /* of the next byte */
	uint32_t length;   /* bytes that are left */
	bool is_user;
};

static inline struct buffer buffer_of_kernel(void *memory, uint32_t length)
{
	return (struct buffer){ (uintptr_t)memory, length, false };
}

static inline struct buffer buffer_of_user(uint32_t address, uint32_t length)
{
	return (struct buffer){ address, length, true };
}

/* Copy up to `length` bytes, never more than the buffer has left, and advance it. Return how many
 * bytes were copied, or -EFAULT if not even the first one could be. */
int buffer_put(struct buffer *to, const void *from, uint32_t length);
int buffer_take(struct buffer *from, void *to, uint32_t length);

/* Puts zero bytes, as buffer_put does. */
int buffer_put_zeros(struct buffer *to, uint32_t length);
