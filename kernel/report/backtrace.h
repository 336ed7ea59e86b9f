/* The backtrace: follows the chain of stack frames, and prints the callers with their names. */
#pragma once

#include <stdint.h>

/* Sets the stack that the two functions below may follow: `size` bytes from `stack` on. NULL means
 * the boot stack, which is in use at first. */
void backtrace_use_stack(const void *stack, uint32_t size);

/* Prints the callers: the return addresses of the frames from the one at ebp on. Stops at a frame
 * pointer that cannot be one, and after 32 frames. */
void backtrace(uintptr_t ebp);

/* The same for code that was interrupted at eip, with this stack pointer, perhaps before it made
 * its frame. */
void backtrace_interrupted(uintptr_t eip, uintptr_t esp, uintptr_t ebp);
