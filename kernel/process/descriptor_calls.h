/* Functions for the calls that duplicate and pass on descriptors, all for the current task. */
#pragma once

#include "kernel/cpu/trap.h"

/* Makes `to` a second descriptor of a descriptor's file. */
int descriptor_duplicate_to(uint32_t descriptor, uint32_t to, bool close_on_exec);

/* Makes a pipe, and gives the program its two descriptors. flags: O_CLOEXEC, O_NONBLOCK. */
int descriptors_of_pipe(uint32_t address, uint32_t flags);

/* fcntl's commands on descriptors. */
int sys_fcntl(struct trap_frame *frame);
