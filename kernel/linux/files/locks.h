/* fcntl's commands for locks. */
#pragma once

struct file;
struct trap_frame;

/* The commands F_GETLK to F_OFD_SETLKW on an open file. May sleep. */
int lock_call(struct file *file, const struct trap_frame *frame);
