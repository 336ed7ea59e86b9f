/* Physical pages, in blocks of 2^order. Up to lesson 4 mm/early.c implements it, then
 * mm/page_alloc.c and mm/page_free.c; from lesson 6 on mm/page_release.c frees. */
#pragma once

#include <stddef.h>

#include "kernel/cpu/memory_layout.h"

/* Bytes of whole pages; 0 when that is more than 4 GiB. */
static inline uint32_t whole_pages(uint32_t bytes)
{
	return (bytes + PAGE_SIZE - 1) & -PAGE_SIZE;
}

/*
 * Returns the kernel address of 2^order pages, contiguous and aligned to their size (order 0 to
 * 10), or NULL when no such block is free. The contents are undefined. Never sleeps; any context.
 */
void *page_alloc(unsigned order);

/* Gives back what page_alloc(order) returned. Up to lesson 5 the pages (only the first one of a
 * large block) are filled with junk, so that a use after this call shows. Panics on an address that
 * is not allocated. Any context. */
void page_free(void *pages, unsigned order);

/* How many pages are free. */
size_t page_free_count(void);
