/*
 * Address spaces of lessons 3 to 5: one 4 MiB page at SPACE_START holds all that a program has. No
 * page tables need be understood for that, and Linux's programs are linked for an address in it.
 *
 * The price: a space takes 4 MiB whatever it holds, its protection is not enforced, and a copy of a
 * space is a copy of 4 MiB. Lesson 6 does better, behind the same header.
 */
#include "mm/space.h"

#include <stddef.h>

#include "kernel/lib/errno.h"
#include "kernel/cpu/boot_memory.h"
#include "kernel/cpu/memory_layout.h"
#include "mm/pool.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

#define SLOT_ORDER   10
#define SLOT_SIZE    (PAGE_SIZE << SLOT_ORDER)
#define SLOT_END     (SPACE_START + SLOT_SIZE)
#define PAGES	     (SLOT_SIZE / PAGE_SIZE)
#define STACK_START  (SLOT_END - SPACE_STACK)
#define LARGE_SHIFT  22
#define ENTRIES	     1024
#define ENTRY_SLOT   0x087u /* present, writable, for ring 3, 4 MiB */
#define ENTRY_TABLE  0x007u
#define ENTRY_SHARED 0x005u /* present, read-only, for ring 3 */

struct space {
	uint32_t *directory;
	uint8_t *slot;		       /* the kernel's address of it */
	uint32_t heap_start, heap_end; /* the heap's mapped part, to the byte */
	uint32_t mapped[PAGES / 32];   /* a set bit is a page that the program has asked for */
};

extern const uint8_t shared_page[PAGE_SIZE];

static uint32_t shared_table[ENTRIES] __attribute__((aligned(PAGE_SIZE)));
static struct pool spaces = POOL_INITIALIZER(struct space);

static uint32_t page_of(uint32_t address)
{
	return (address - SPACE_START) / PAGE_SIZE;
}

static bool is_mapped(const struct space *space, uint32_t page)
{
	return space->mapped[page / 32] >> page % 32 & 1;
}

static void set_mapped(struct space *space, uint32_t first, uint32_t end, bool mapped)
{
	for (uint32_t page = first; page < end; page++) {
		uint32_t bit = 1u << page % 32;

		space->mapped[page / 32] &= ~bit;
		space->mapped[page / 32] |= mapped ? bit : 0;
	}
}

/* The pages of a range; false when it does not lie in the slot. An empty range is in no page. */
static bool pages_of(uint32_t address, uint32_t length, uint32_t *first, uint32_t *end)
{
	if (address < SPACE_START || address > SLOT_END || length > SLOT_END - address)
		return false;
	*first = page_of(address);
	*end = page_of(address + length + PAGE_SIZE - 1);
	return true;
}

/* ---- the whole ---- */

/* The kernel's part is the same in every space, and so is the shared page below it. */
static void fill_directory(struct space *space)
{
	uint32_t kernel = KERNEL_BASE >> LARGE_SHIFT;

	memset(space->directory, 0, PAGE_SIZE);
	memcpy(&space->directory[kernel], &kernel_page_directory[kernel],
	       (ENTRIES - kernel) * sizeof(uint32_t));
	shared_table[ENTRIES - 1] = physical_address(shared_page) | ENTRY_SHARED;
	space->directory[SPACE_SHARED >> LARGE_SHIFT] =
	    physical_address(shared_table) | ENTRY_TABLE;
	space->directory[SPACE_START >> LARGE_SHIFT] = physical_address(space->slot) | ENTRY_SLOT;
}

/* A space whose slot holds anything. */
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

struct space *space_copy(const struct space *space)
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

void space_clear(struct space *space)
{
	memset(space->slot, 0, SLOT_SIZE);
	memset(space->mapped, 0, sizeof(space->mapped));
	set_mapped(space, page_of(STACK_START), PAGES, true);
	space->heap_start = space->heap_end = 0;
}

void space_destroy(struct space *space)
{
	page_free(space->slot, SLOT_ORDER);
	page_free(space->directory, 0);
	pool_free(&spaces, space);
}

void space_use(const struct space *space)
{
	const uint32_t *directory = space ? space->directory : kernel_page_directory;

	__asm__ volatile("movl %0, %%cr3" : : "r"(physical_address(directory)) : "memory");
}

/* ---- its parts ---- */

int space_map(struct space *space, uint32_t address, uint32_t length, unsigned protection)
{
	uint32_t first, end;

	if (!pages_of(address, length, &first, &end))
		return -ENOMEM;
	memset(space->slot + first * PAGE_SIZE, 0, (end - first) * PAGE_SIZE);
	set_mapped(space, first, end, true);
	return 0;
}

/* The highest place below the stack where so many pages are free; PAGES when there is none. */
static uint32_t find_room(const struct space *space, uint32_t count)
{
	uint32_t room = 0;

	for (uint32_t page = page_of(STACK_START); page-- > 0;) {
		room = is_mapped(space, page) ? 0 : room + 1;
		if (room == count)
			return page;
	}
	return PAGES;
}

int space_map_anywhere(struct space *space, uint32_t length, unsigned protection)
{
	uint32_t page = PAGES;

	if (length > 0 && length <= SLOT_SIZE)
		page = find_room(space, (length + PAGE_SIZE - 1) / PAGE_SIZE);
	if (page == PAGES)
		return -ENOMEM;
	uint32_t address = SPACE_START + page * PAGE_SIZE;

	space_map(space, address, length, protection);
	return address;
}

int space_unmap(struct space *space, uint32_t address, uint32_t length)
{
	uint32_t first, end;

	if (address % PAGE_SIZE != 0 || length == 0)
		return -EINVAL;
	if (pages_of(address, length, &first, &end))
		set_mapped(space, first, end, false);
	return 0;
}

int space_protect(struct space *space, uint32_t address, uint32_t length, unsigned protection)
{
	uint32_t first, end;

	if (address % PAGE_SIZE != 0)
		return -EINVAL;
	if (!pages_of(address, length, &first, &end))
		return -ENOMEM;
	while (first < end)
		if (!is_mapped(space, first++))
			return -ENOMEM;
	return 0;
}

bool space_can_hold(uint32_t address, uint32_t length)
{
	return address >= SPACE_START && address <= STACK_START && length <= STACK_START - address;
}

bool space_is_free(const struct space *space, uint32_t address, uint32_t length)
{
	uint32_t first, end;

	if (!pages_of(address, length, &first, &end))
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

/* EXERCISE 3.6 (programs that mean harm, part 3): the end of the heap, wherever ring 3 wants it.
   1. Below heap_start, or above STACK_START: refused. So is growing over pages that are mapped
   already. Refused means: nothing has changed, and the old end is the result.
   2. Growing maps whole pages, by space_map, which zeroes them; shrinking takes whole pages away.
   The page in which the old end lies belongs to the heap already.
   3. New memory is zero to the byte, in that page too: a program may have shrunk its heap. */
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

		set_mapped(space, page_of(kept), page_of(end), false);
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

bool space_next_range(const struct space *space, uint32_t *start, uint32_t *end)
{
	uint32_t page = *start < SPACE_START ? 0 : page_of(*start), first;

	while (page < PAGES && !is_mapped(space, page))
		page++;
	for (first = page; page < PAGES && is_mapped(space, page); page++)
		;
	if (first == page)
		return false;
	if (*start < SPACE_START + first * PAGE_SIZE)
		*start = SPACE_START + first * PAGE_SIZE;
	*end = SPACE_START + page * PAGE_SIZE;
	return true;
}

uint32_t space_read(const struct space *space, uint32_t address, void *to, uint32_t length)
{
	uint32_t start = address, end;

	if (!space_next_range(space, &start, &end) || start != address)
		return 0;
	if (length > end - start)
		length = end - start;
	memcpy(to, space->slot + (start - SPACE_START), length);
	return length;
}

uint32_t space_size(const struct space *space)
{
	uint32_t pages = 0;

	for (uint32_t page = 0; page < PAGES; page++)
		pages += is_mapped(space, page);
	return pages * PAGE_SIZE;
}
