/*
 * Address spaces of lessons 3 to 5: one 4 MiB page holds all of a program. That needs no page
 * tables, and Linux's programs are linked for an address in it.
 *
 *	0x08000000	SPACE_START	the slot begins; programs are linked 288 KiB further
 *	0x08048000			code and data, where the file says
 *	heap_start	heap_end	brk moves the end between here ...
 *	0x083c0000	STACK_START	... and here: the stack, SPACE_STACK bytes
 *	0x08400000	SLOT_END	the end of the slot
 *	0xbffff000	SPACE_SHARED	the one page that every space shares, read-only
 *	0xc0000000	KERNEL_BASE	the kernel, the same in every space
 *
 * So a space has a page directory with one entry of its own, the slot's; and a bit for each 4 KiB
 * of the slot that says whether the program has asked for it. The processor does not look at the
 * bits: they are for brk and mmap, so that nothing is handed out twice.
 *
 * The price: every space takes 4 MiB, protection is not enforced, and a copy of a space is a copy
 * of 4 MiB. Lesson 6 does better, with the same header.
 *
 * Called by the task whose space it is, or for a space that no task has yet.
 */
#include "mm/space_slot.h"

#include "kernel/lib/errno.h"
#include "kernel/cpu/boot_memory.h"
#include "mm/pool.h"
#include "kernel/lib/string.h"

#define ENTRIES	     1024
#define ENTRY_SLOT   0x087u /* present, writable, for user mode, 4 MiB */
#define ENTRY_TABLE  0x007u
#define ENTRY_SHARED 0x005u /* present, read-only, for user mode */

static uint32_t shared_table[ENTRIES] __attribute__((aligned(PAGE_SIZE)));
static struct pool spaces = POOL_INITIALIZER(struct space);

/* ---- the whole ---- */

/* Once, at start-up: the table is the same for all spaces. */
void space_share(const void *page)
{
	shared_table[ENTRIES - 1] = physical_address(page) | ENTRY_SHARED;
}

/* The kernel's part is the same in every space, and so is the shared page below it. */
static void fill_directory(struct space *space)
{
	uint32_t kernel = KERNEL_BASE >> LARGE_SHIFT;

	memset(space->directory, 0, PAGE_SIZE);
	memcpy(&space->directory[kernel], &kernel_page_directory[kernel],
	       (ENTRIES - kernel) * sizeof(uint32_t));
	space->directory[SPACE_SHARED >> LARGE_SHIFT] =
	    physical_address(shared_table) | ENTRY_TABLE;
	space->directory[SPACE_START >> LARGE_SHIFT] = physical_address(space->slot) | ENTRY_SLOT;
}

/* A space whose slot is not cleared yet. */
static struct space *allocate(void)
{
	struct space *space = pool_alloc(&spaces);

	if (!space)
		return NULL;
	space->directory = page_alloc(0);
	space->slot = space->directory ? page_alloc(SLOT_ORDER) : NULL;
	if (space->slot) {
		fill_directory(space);
		return space;
	}
	if (space->directory)
		page_free(space->directory, 0);
	pool_free(&spaces, space);
	return NULL;
}

struct space *space_create(void)
{
	struct space *space = allocate();

	if (space)
		space_clear(space);
	return space;
}

/* For fork: 4 MiB are copied, about a millisecond. */
struct space *space_copy(struct space *space)
{
	struct space *copy = allocate();

	if (!copy)
		return NULL;
	memcpy(copy->slot, space->slot, SLOT_SIZE);
	memcpy(copy->mapped, space->mapped, sizeof(copy->mapped));
	copy->heap_start = space->heap_start;
	copy->heap_end = space->heap_end;
	return copy;
}

/* Zeros everywhere, so that nothing of the old program can be seen. */
void space_clear(struct space *space)
{
	memset(space->slot, 0, SLOT_SIZE);
	memset(space->mapped, 0, sizeof(space->mapped));
	space_set_mapped(space, page_of(STACK_START), SLOT_PAGES, true);
	space->heap_start = space->heap_end = 0;
}

/* In the reverse order of allocate(). */
void space_destroy(struct space *space)
{
	page_free(space->slot, SLOT_ORDER);
	page_free(space->directory, 0);
	pool_free(&spaces, space);
}

/* Loading CR3 also flushes the entries of the previous space from the TLB. */
void space_use(const struct space *space)
{
	const uint32_t *directory = space ? space->directory : kernel_page_directory;

	__asm__ volatile("movl %0, %%cr3" : : "r"(physical_address(directory)) : "memory");
}

/* ---- its parts ---- */

/* The slot is always mapped: to map a part of it means to note that, and to zero it. */
int space_map(struct space *space, uint32_t address, uint32_t length, unsigned protection)
{
	uint32_t first, end;

	if (!space_pages_of(address, length, &first, &end))
		return -ENOMEM;
	memset(space->slot + first * PAGE_SIZE, 0, (end - first) * PAGE_SIZE);
	space_set_mapped(space, first, end, true);
	return 0;
}

/* Below the stack, wholly inside the slot. */
bool space_can_hold(uint32_t address, uint32_t length)
{
	return address >= SPACE_START && address <= STACK_START && length <= STACK_START - address;
}

/* False for a range outside the slot as well. */
bool space_is_free(const struct space *space, uint32_t address, uint32_t length)
{
	uint32_t first, end;

	if (!space_pages_of(address, length, &first, &end))
		return false;
	while (first < end)
		if (is_mapped(space, first++))
			return false;
	return true;
}

void space_set_heap(struct space *space, uint32_t address)
{
	space->heap_start = space->heap_end = address;
}

/* EXERCISE 3.6 (programs that mean harm, part 3): space_set_break, Linux's brk.

   Moves the end of the heap to `address` and returns it. If that is below heap_start, above
   STACK_START, or would grow over a page that is mapped already, nothing changes and the old end
   is the result. Whole pages are mapped (space_map zeroes them) and unmapped; heap_end itself is
   exact to the byte.

   Pitfalls: memory that the heap gains is zero to the byte, even in the page that it ended in: a
   program may have written there, shrunk its heap, and grown it again. brk(0) is how programs
   ask for the end. */
/* SOLUTION 3.6 { */
uint32_t space_set_break(struct space *space, uint32_t address)
{
	uint32_t end = (space->heap_end + PAGE_SIZE - 1) & -PAGE_SIZE;

	if (address < space->heap_start || address > STACK_START)
		return space->heap_end;
	if (address > end) {
		if (!space_is_free(space, end, address - end))
			return space->heap_end;
		space_map(space, end, address - end, SPACE_READ | SPACE_WRITE);
	} else {
		uint32_t kept = (address + PAGE_SIZE - 1) & -PAGE_SIZE;

		space_set_mapped(space, page_of(kept), page_of(end), false);
	}
	if (address > space->heap_end && space->heap_end < end)
		memset(space->slot + (space->heap_end - SPACE_START), 0,
		       (address < end ? address : end) - space->heap_end);
	space->heap_end = address;
	return address;
}
/* } SOLUTION 3.6 */

uint32_t space_stack_top(const struct space *space)
{
	return SLOT_END;
}
