/* A space that is one slot, for mm/space_slot*.c only: see mm/space_slot.c. */
#pragma once

#include "mm/page_alloc.h"
#include "mm/space.h"

#define SLOT_ORDER  10
#define SLOT_SIZE   (PAGE_SIZE << SLOT_ORDER)
#define SLOT_END    (SPACE_START + SLOT_SIZE)
#define SLOT_PAGES  (SLOT_SIZE / PAGE_SIZE)
#define STACK_START (SLOT_END - SPACE_STACK)

struct space {
	uint32_t *directory;
	uint8_t *slot;			  /* its address in the kernel */
	uint32_t heap_start, heap_end;	  /* the heap's mapped part, to the byte */
	uint32_t mapped[SLOT_PAGES / 32]; /* a set bit is a page that the program has asked for */
};

/* The number of an address's page in the slot. */
static inline uint32_t page_of(uint32_t address)
{
	return (address - SPACE_START) / PAGE_SIZE;
}

static inline bool is_mapped(const struct space *space, uint32_t page)
{
	return space->mapped[page / 32] >> page % 32 & 1;
}

/* Pages from `first` up to the one before `end`, counted from SPACE_START. */
static inline void space_set_mapped(struct space *space, uint32_t first, uint32_t end, bool mapped)
{
	for (uint32_t page = first; page < end; page++) {
		uint32_t bit = 1u << page % 32;

		space->mapped[page / 32] &= ~bit;
		space->mapped[page / 32] |= mapped ? bit : 0;
	}
}

/* The pages that a range touches. False for a range outside the slot; the subtraction cannot wrap.
 */
static inline bool space_pages_of(uint32_t address, uint32_t length, uint32_t *first, uint32_t *end)
{
	if (address < SPACE_START || address > SLOT_END || length > SLOT_END - address)
		return false;
	*first = page_of(address);
	*end = page_of(address + length + PAGE_SIZE - 1);
	return true;
}
