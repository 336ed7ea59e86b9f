/*
 * Address spaces from lesson 6 on: areas are what a program has asked for, page tables map what it
 * has touched.
 *
 *	0x00010000	SPACE_LOWEST	nothing below: a null pointer faults, with an offset, too
 *	0x08048000			the program, as its file says; the heap after it
 *	...				mmap looks for room from the stack downwards
 *	0xbf7fe000			as far as the stack may grow: STACK_LIMIT
 *	0xbfffe000	STACK_END	its upper end
 *	0xbffff000	SPACE_SHARED	the one page that every space shares, read-only
 *	0xc0000000	KERNEL_BASE	the kernel, the same in every space
 */
#include "kernel/cpu/boot_memory.h"
#include "kernel/cpu/paging.h"
#include "mm/page_alloc.h"
#include "mm/area.h"
#include "mm/page_table.h"
#include "mm/pool.h"
#include "mm/space_layout.h"
#include "mm/user_copy.h"
#include "mm/zones.h"

#define FIRST_STACK (4 * PAGE_SIZE) /* in an area from the beginning; more when it is touched */
#define ROOM	    32u		    /* pages for each space that there is: what it will write to */

static struct pool spaces = POOL_INITIALIZER(struct space);
static uint32_t shared_entry;

void space_share(const void *page)
{
	shared_entry = physical_address(page) | PTE_PAGE;
}

/* A space with nothing but the shared page, which is in no area and belongs to the kernel.
 *
 * It returns NULL if too little memory would be left for the spaces that exist. A fork is cheap,
 * and the pages come later: programs that fork without an end (a fork bomb) would have all memory
 * before one of them is refused, and then each page that one of them writes to would cost another
 * one its life. */
struct space *space_allocate(void)
{
	while (page_free_count() < spaces.used * ROOM)
		if (!page_reclaim || !page_reclaim())
			return NULL;
	struct space *space = pool_alloc(&spaces);
	uint32_t *pte = NULL;

	if (space && (space->directory = page_directory_create()))
		pte = pte_of(space, SPACE_SHARED, true);
	if (pte) {
		pte_set(space, SPACE_SHARED, pte, shared_entry);
		space->pages = 1;
		return space;
	}
	if (space && space->directory)
		page_directory_destroy(space->directory);
	if (space)
		pool_free(&spaces, space);
	return NULL;
}

static int put_stack(struct space *space)
{
	const struct area stack = { .flags = SPACE_PROTECTION | AREA_STACK };

	return area_put(space, STACK_END - FIRST_STACK, STACK_END, &stack);
}

struct space *space_create(void)
{
	struct space *space = space_allocate();

	if (!space || put_stack(space) == 0)
		return space;
	space_destroy(space);
	return NULL;
}

/* A range that begins and ends outside all areas is in the middle of no area, so the cut cannot
 * fail. */
void space_destroy(struct space *space)
{
	area_cut(space, 0, SPACE_SHARED);
	page_unmap_range(space, SPACE_SHARED, KERNEL_BASE);
	page_directory_destroy(space->directory);
	pool_free(&spaces, space);
}

/* For exec. The TLB is flushed once for all of it. An area has just been freed, so there is memory
 * for one. */
void space_clear(struct space *space)
{
	space_use(NULL);
	area_cut(space, 0, SPACE_SHARED);
	space_use(space);
	space->heap_start = space->heap_end = space->pinning = 0;
	put_stack(space);
}

void space_use(const struct space *space)
{
	const uint32_t *directory = space ? space->directory : kernel_page_directory;

	paging_use(physical_address(directory));
}

/* ---- its parts ---- */

bool space_can_hold(uint32_t address, uint32_t length)
{
	return address >= SPACE_LOWEST && address <= STACK_END && length <= STACK_END - address;
}

int space_map(struct space *space, uint32_t address, uint32_t length, unsigned protection)
{
	const struct area form = { .flags = protection };
	uint32_t start = address & -PAGE_SIZE, end = whole_pages(address + length);

	if (!space_can_hold(address, length))
		return -ENOMEM;
	return start < end ? area_put(space, start, end, &form) : 0;
}

bool space_is_free(const struct space *space, uint32_t address, uint32_t length)
{
	const struct area *next = area_from(space, address & -PAGE_SIZE);

	return space_can_hold(address, length) &&
	       (!next || area_start(next) >= whole_pages(address + length));
}

void space_set_heap(struct space *space, uint32_t address)
{
	space->heap_start = space->heap_end = address;
}

/* EXERCISE 6.2 (areas, part 2): space_set_break, as mm/space.h has it: the heap is an area from
   heap_start to heap_end, rounded up to pages.

   Pitfalls: it must not grow into another area, nor into the stack's room to grow, of which the
   STACK_GAP is a part. When the heap shrinks, the rest of its last page stays mapped; when it grows
   again, that rest must be zero. Which of the two should clear it (clear_user), if most programs
   only grow? A cut and a copy may sleep, and meanwhile others, fork for instance, read heap_end. */
/* SOLUTION 6.2 { */
uint32_t space_set_break(struct space *space, uint32_t address)
{
	uint32_t before = space->heap_end, old = whole_pages(before), end = whole_pages(address);

	if (address < space->heap_start || address > STACK_END - STACK_LIMIT - STACK_GAP)
		return space->heap_end;
	if (end > old && (!space_is_free(space, old, end - old) ||
			  space_map(space, old, end - old, SPACE_READ | SPACE_WRITE) != 0))
		return space->heap_end;
	space->heap_end = address;
	if (end < old && area_cut(space, end, old) != 0)
		return space->heap_end = before;
	if (address < before && address < end)
		clear_user(address, (before < end ? before : end) - address);
	return address;
}
/* } SOLUTION 6.2 */

uint32_t space_stack_top(const struct space *space)
{
	return STACK_END;
}
