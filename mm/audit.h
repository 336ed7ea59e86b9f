/* The auditor: is what the allocators believe true? */
#pragma once

#include <stdint.h>

#define AUDIT_LINES 10

/*
 * Looks at every page, every free list and every slab, and prints what contradicts itself, at most
 * AUDIT_LINES lines. Returns how many contradictions there are; 0 means that all invariants of
 * mm/page.h, mm/buddy.h and mm/slab.h hold. Interrupts are disabled. It changes nothing, allocates
 * nothing, does not sleep, and comes to an end whatever is in the structures: the page array
 * itself, the list of all caches and the caches' form (size, count) may be believed, but no link,
 * count or state.
 */
uint32_t memory_audit(void);
