/* Thread-local segments: from a program's description to the processor's descriptor. */
#pragma once

#include <stdint.h>

/* Takes the descriptor of a thread's segment from a user address. Returns 0, -EFAULT, or -EINVAL if
 * it is for another entry of the table than the one that programs have. */
int thread_local_from_user(uint32_t address, uint64_t *packed);
