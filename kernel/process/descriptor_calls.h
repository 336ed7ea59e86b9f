/* Functions for the calls that duplicate and pass on descriptors, all for the current task. */
#pragma once

#include "kernel/cpu/trap.h"

struct file;

/* Makes `to` a descriptor of a file, too. -EBADF for NULL. */
int descriptor_duplicate_to(struct file *file, uint32_t to, bool close_on_exec);

/* Gives the program two descriptors at an address: either it has both, or nothing stays open. Takes
 * over the references in any case. flags: O_CLOEXEC. May sleep. */
int descriptors_give_two(uint32_t address, struct file *one, struct file *other, uint32_t flags);

/* Makes a pipe, and gives the program its two descriptors. flags: O_CLOEXEC, O_NONBLOCK. */
int descriptors_of_pipe(uint32_t address, uint32_t flags);

/* fcntl's other commands: of the descriptor in EBX, whose file this is. -EINVAL for unknown ones.
 */
int fcntl_more(struct file *file, const struct trap_frame *frame) OPTIONAL;
