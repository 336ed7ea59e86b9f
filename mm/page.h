/*
 * The page array, one structure for each page frame, so that every page has a state and an owner.
 *
 * A frame is 4 KiB of physical memory; frames are numbered from physical address 0. The allocator
 * hands out blocks: 2^order frames, aligned to their size. Only the first page of a block says what
 * the block is; the others are PAGE_TAIL. So a block of any size can change its owner by a change
 * in one place.
 */
#pragma once

#include "kernel/cpu/memory_layout.h"
#include "kernel/lib/list.h"

/* The largest block is 2^(ORDERS - 1) frames: 4 MiB. */
#define ORDERS 11

enum page_state {
	PAGE_RESERVED, /* not memory, or in use since boot: never handed out */
	PAGE_FREE,     /* the first page of a free block: in a list of its zone */
	PAGE_USED,     /* the first page of a block that page_alloc has handed out */
	PAGE_SLAB,     /* handed out, and cut into objects: mm/slab.h */
	PAGE_TAIL,     /* a page of a block, free or not, that is not its first one */
};

struct page {
	union {
		struct list link;    /* PAGE_FREE: in the list of its order */
		uint32_t references; /* PAGE_USED: 1 at first; lesson 6 counts its entries */
	};
	uint8_t state;	/* enum page_state */
	uint8_t order;	/* of PAGE_FREE, PAGE_USED, PAGE_SLAB: the block has 2^order pages */
	uint32_t owner; /* who asked for the block last, or freed it: an address in its code */
};

/* The array, and how many frames it has: a multiple of 2^(ORDERS - 1), so that the buddy of a frame
 * in it is in it, too. Frames without memory are PAGE_RESERVED. */
extern struct page *page_array;
extern uint32_t page_frames;

/*
 * Makes the array and the zones. A frame is free if all of it is in a usable range of the memory
 * map, above the kernel's end, within the direct map, and outside the array; all other frames are
 * PAGE_RESERVED. Called once, after memory_map_initialize. Panics if there is no room for the
 * array.
 */
void page_array_initialize(void);

/* From lesson 6 on: frees a page (of order 0) whose last reference has gone: page_release in
 * mm/page_table.h. Any context. */
void page_free_last(struct page *page);

/* Rounded up to a multiple of the unit, which is a power of two. */
static inline uint32_t round_up(uint32_t value, uint32_t unit)
{
	return (value + unit - 1) & -unit;
}

static inline uint32_t frame_of(const struct page *page)
{
	return page - page_array;
}

/* The kernel's address of a page: PAGE_SIZE bytes of memory for each entry of the array. */
static inline void *page_address(const struct page *page)
{
	return direct_map(((uintptr_t)page - (uintptr_t)page_array) * (PAGE_SIZE / sizeof(*page)));
}

/* The page of an address in memory that the kernel has. */
static inline struct page *page_of(const void *address)
{
	return &page_array[physical_address(address) >> PAGE_SHIFT];
}

/* The page of any address in it; or NULL for an address that is in no frame of the array. */
static inline struct page *page_at(const void *address)
{
	uint32_t frame = physical_address(address) >> PAGE_SHIFT;

	return frame < page_frames ? &page_array[frame] : 0;
}
