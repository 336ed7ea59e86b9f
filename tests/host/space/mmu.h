/* A machine for mm/ on the host: physical memory at 3 GiB, a page walk, large pages included, and a
 * TLB that forgets nothing by itself; of global pages nothing when another space is loaded. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct space;

#define MMU_FRAMES 8192u /* 32 MiB */

/* Makes the memory, all of it free, and the page array. Once. */
void mmu_initialize(void);

/* Allocations (of pages and of objects) fail once in this many; 0: never. */
extern uint32_t mmu_fails_one_in;

/* Called before each page is handed out, as giving pages back would be; NULL: nothing. */
extern void (*mmu_reclaim)(void);

/* How many pages are free, and how many objects of pools are out. */
uint32_t mmu_free(void);
uint32_t mmu_objects(void);

/* The entry by which the processor accesses an address, or 0 if it is a fault. What the TLB
 * remembers is asked first; before it refuses, the processor looks at the tables again, and
 * remembers that. */
uint32_t mmu_translate(const struct space *space, uint32_t address, bool write);

/* Does the TLB remember nothing that the tables of the space in use do not say any more? */
void mmu_check_tlb(const struct space *space);

/* What a program does in the space that is in use: reads or writes a word. Faults are handled until
 * the access works; false: space_fault refused, *error says why. */
bool mmu_read(struct space *space, uint32_t address, uint32_t *value, int *error);
bool mmu_write(struct space *space, uint32_t address, uint32_t value, int *error);
