/* The auditor: do the allocators' structures agree with each other? */
#pragma once

#include <stdint.h>

#define AUDIT_LINES 10

/*
 * Checks every page, every free list and every slab, and prints the contradictions, at most
 * AUDIT_LINES lines. Returns how many contradictions there are; 0 means that all invariants of
 * mm/page.h, mm/buddy.h and mm/slab.h hold. Interrupts are disabled. It changes nothing, allocates
 * nothing, does not sleep, and comes to an end whatever is in the structures: the page array
 * itself, the list of all caches and the caches' sizes and object counts may be trusted, but no
 * other link, count or state.
 */
uint32_t memory_audit(void);
