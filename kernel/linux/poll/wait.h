/* Waiting for files until one of them is ready, for poll, select and epoll. All functions are for
 * the current task. */
#pragma once

#include "fs/linux/poll.h"

#define POLL_QUEUES 2u /* that a file waits in: an end of a pipe may be for reading and writing */

/* What is ready of what is wanted (of POLLIN and its like), errors always. */
uint32_t poll_file(struct file *file, uint32_t wanted, struct poll_table *table);

/* Looks at the files once. Returns how many are ready, or a negated errno. */
typedef int poll_scanner(void *context, struct poll_table *table);

/* Scans until something is ready, or until the deadline (0: once). count is how many files there
 * are at most. A wait that was interrupted, and goes on without a handler, ends when it would have
 * ended. Returns the scanner's result, -ERESTART_SLEEP or -ENOMEM. */
int poll_wait_for(poll_scanner *scan, void *context, uint32_t count, uint64_t deadline);

/* The deadline for a wait of this many milliseconds; negative: for ever. */
uint64_t poll_deadline(int32_t milliseconds);

/* Around a wait: until it ends, signals are blocked as the set at a user address, of this size,
 * says (0: as they are, whatever the size). The first returns 0, or -EINVAL or -EFAULT, and then
 * nothing has begun; the second passes the wait's result on. A signal that ended the wait is still
 * to be delivered under that set: what delivers it puts the old one back, as for sigsuspend. */
int poll_mask(uint32_t mask, uint32_t size);
int poll_unmask(int result);
