/* Page faults: how programs get their memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct space;

/* How many bytes of an object are mapped at once if they are in memory: by a fault (a power of two,
 * from a page to 4 MiB), and by exec for each segment. Experiments change both. */
extern uint32_t fault_around_bytes, exec_shown_bytes;

struct area;

/* Maps, read-only, those pages of an area's object in [start, end) that are in memory. The range
 * is a part of the area within 4 MiB that one page table maps. Only for an object with the
 * operation peek. */
void space_show(struct space *space, const struct area *area, uint32_t start, uint32_t end);

/*
 * Maps a page at a user address, writable if `write`, as far as the area there allows.
 *
 * Returns 0; -EFAULT where no area is; -EACCES where its protection forbids it; -EIO where the
 * area's object has no such page; -ENOMEM; or -EAGAIN if it would have to sleep and `may_sleep` is
 * false. For the current task's space, or one that no task changes meanwhile. Another task of the
 * space may change its areas while this one sleeps: then the result is 0, and the access faults
 * again.
 */
int space_fault(struct space *space, uint32_t address, bool write, bool may_sleep);

/* How many pages of memory the program uses now, including those that it shares. */
uint32_t space_resident(const struct space *space);
