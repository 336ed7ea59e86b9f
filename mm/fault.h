/* Page faults: where the memory of programs comes from. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct space;

/* How many bytes a fault shows of an object, as far as they are in memory: a power of two from a
 * page to 4 MiB. Experiments change it. */
extern uint32_t fault_around_bytes;

/*
 * Makes a page be there at a user address, and writable if `write`, as the area there allows.
 *
 * Returns 0; -EFAULT where no area is; -EACCES where its protection forbids it; -EIO where the
 * area's object has no such page; -ENOMEM; or -EAGAIN if it would have to sleep and `may_sleep` is
 * false. For the current task's space, or one that no task changes meanwhile. Another task of the
 * space may change its areas while this one sleeps: then the result is 0, and the access faults
 * again.
 */
int space_fault(struct space *space, uint32_t address, bool write, bool may_sleep);

/* How many pages of memory its program uses at the moment, those that it shares included. */
uint32_t space_resident(const struct space *space);
