/*
 * Giving pages back, from lesson 6 on: without the junk that mm/page_free.c writes, because a page
 * of a program cannot be used after it is unmapped, and filling it takes as long as all the rest of
 * a page fault. (kmalloc_debug.h goes on to find uses after free in the kernel.)
 */
#include "kernel/cpu/interrupts.h"
#include "kernel/report/panic.h"
#include "mm/page_alloc.h"
#include "mm/zones.h"

/* Inline in page_free, too. */
inline void page_free_last(struct page *page)
{
	bool enabled = interrupts_disable();

	zone_give(page);
	interrupts_restore(enabled);
}

/* Checks first that it is such a block: another one would corrupt the free lists. */
void page_free(void *pages, unsigned order)
{
	struct page *page = page_at(pages);

	if (!page || (uintptr_t)pages % PAGE_SIZE || page->state != PAGE_USED ||
	    page->order != order)
		panic("page_free: %p is not a block of order %u that is in use", pages, order);
	page->owner = (uintptr_t)__builtin_return_address(0);
	page_free_last(page);
}
