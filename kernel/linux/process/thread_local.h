/* Thread-local segments: from a program's description to the processor's descriptors. */
#pragma once

#include "kernel/cpu/descriptors.h"
#include "kernel/cpu/trap.h"

/* Takes the descriptor of a thread's segment from a user address. Returns 0, -EFAULT, or -EINVAL if
 * it is for an entry of the table that programs do not have, or no segment of data. `may_choose`:
 * the entry -1 means a free one of the current task, which the program is told; -ESRCH without one.
 */
int thread_local_from_user(uint32_t address, struct thread_segments *segments, bool may_choose);

/* The selector with user mode's privilege level, if the current task may load it into a register of
 * data; else 0, the null selector. */
uint32_t selector_for_user(uint32_t selector);

/* Applies that to the frame's gs, fs, es and ds: on the way to user mode the kernel itself loads
 * them, and would fault. ss becomes the usual one if it is a thread-local segment, which may no
 * longer be a stack's. */
void selectors_check(struct trap_frame *frame);
