/*
 * page_free, which first checks that the block is what the caller says; a report names its owner.
 *
 * Freeing something that is not such a block would corrupt the free lists, and the damage would
 * show much later, in some other function's memory.
 *
 * Any context: interrupts are disabled while the lists change.
 */

#include "kernel/cpu/interrupts.h"
#include "kernel/lib/string.h"
#include "kernel/report/panic.h"
#include "kernel/report/symbols.h"
#include "mm/page_alloc.h"
#include "mm/zones.h"

#define JUNK	    0xcc /* INT3: executing freed memory shows as well */
#define SMALL_ORDER 4	 /* of larger blocks only the first page is filled: it takes long */
#define SYMBOL_TEXT 80	 /* bytes of a function's name with its address */

/* Ends the run: says what is at the address instead of a block of this order. `page` is NULL for no
 * memory. */
static void __attribute__((noreturn)) refuse(const struct page *page, unsigned order)
{
	static const char *const states[] = {
		[PAGE_RESERVED] = "was never handed out",
		[PAGE_FREE] = "is free already",
		[PAGE_USED] = "has another order or start",
		[PAGE_SLAB] = "is cut into objects",
		[PAGE_TAIL] = "is not the first page of its block",
	};
	char owner[SYMBOL_TEXT];

	if (!page)
		panic("page_free: the address is not memory");
	symbol_describe(page->owner, owner, sizeof(owner));
	panic("page_free: frame %u of order %u %s (order %u, last allocated or freed by %s)",
	      frame_of(page), order, states[page->state], page->order, owner);
}

/* EXERCISE 5.2 (the buddy system, part 2): page_free (mm/page_alloc.h).

   refuse(page_at(pages), order) ends the run with what is wrong. The junk is written while the
   pages still are the caller's. `owner` becomes the address that the caller goes on at:
   __builtin_return_address(0).

   Pitfalls: an address inside a page; the address of a block's second page; the right address with
   another order; a block that is free; no memory at all. */
/* SOLUTION 5.2 { */
void page_free(void *pages, unsigned order)
{
	struct page *page = page_at(pages);

	if (!page || (uintptr_t)pages % PAGE_SIZE || page->state != PAGE_USED ||
	    page->order != order)
		refuse(page, order);
	memset(pages, JUNK, PAGE_SIZE << (order <= SMALL_ORDER ? order : 0));
	bool enabled = interrupts_disable();

	page->owner = (uintptr_t)__builtin_return_address(0);
	zone_give(page);
	interrupts_restore(enabled);
}
/* } SOLUTION 5.2 */
