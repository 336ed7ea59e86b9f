/* Thread-local segments: from a program's description to the processor's descriptors. */
#pragma once

#include <stdbool.h>

#include "kernel/cpu/descriptors.h"

/* Takes the descriptor of a thread's segment from a user address. Returns 0, -EFAULT, or -EINVAL if
 * it is for an entry of the table that programs do not have, or no segment of data. */
int thread_local_from_user(uint32_t address, struct thread_segments *segments);

/* Does a selector, with whatever privilege level, mean one of these segments, and is it there? */
bool thread_local_has(const struct thread_segments *segments, uint32_t selector);
