/*
 * Page faults: a program gets a page of memory when it first touches it.
 *
 *	no area			not the program's, unless its stack may grow to there
 *	the area forbids it	not allowed
 *	no page yet	read	zeros: the one zero page, read-only; or the object's page
 *			write	a page of its own, of zeros or a copy of the object's
 *	read-only	write	copy on write: its own page if it is alone, else a copy
 *
 * A page counts the entries that map it. A private page with a count above 1 is shared by fork, or
 * is a file's, whose cache counts as well; it must be read-only in all entries. The zero page is
 * not counted: its state is PAGE_RESERVED.
 *
 * The entry may be right already when the kernel looks at a fault: another task of the space was
 * faster, or the TLB remembered an older entry. Then there is nothing to do.
 *
 *	0xbfffe000  STACK_END	[ stack, an area with AREA_STACK ]
 *				   ^ grows to a page that is touched, at most STACK_LIMIT bytes ...
 *				STACK_GAP, in which there must be no area
 *				[ the next area below ]
 *
 * Faults of the kernel itself, in copies from and to the program (mm/user_copy.c), are handled in
 * the same way. What an error means for the program is decided in kernel/process/page_fault.c.
 */
#include "mm/fault.h"

#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/copy_on_write.h"
#include "mm/page_alloc.h"
#include "mm/page_table.h"
#include "mm/space_layout.h"

uint32_t fault_around_bytes = 16 * PAGE_SIZE, exec_shown_bytes = 128 * PAGE_SIZE;

static uint8_t zero_page[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));

/* EXERCISE 6.3 (the fault): space_fault and space_show, as mm/fault.h has them and the table above.

   - the area of an address. A stack grows to the page that was touched (area_move_start), if its
     size and the gap below it stay within the limits of the drawing.
   - the page, if there is none yet. A page that is not the program's own is mapped read-only, even
     if the area may be written to; only a write to a shared area maps the object's page writable.
     An area that gets a copy of an object's page is AREA_COPIED from then on.
   - fault-around: when an object's page is read, the pages around it that are in memory are mapped,
     too (space_show): those within fault_around_bytes, aligned to that, and within the area. One
     call of the object's `peek` may give fewer pages than that, or more.
   - space->pages counts the entries that are made.
   - given: the first lines of space_fault, for large pages (mm/page_table.h): keep them.

   Pitfalls: getting a page from an object may sleep. Meanwhile another task may make the entry:
   then release the page that came too late. It may also unmap the area, which is freed then, or put
   another in its place: then map nothing and return 0, because the access faults again. Hold the
   object meanwhile (ops->hold). Find the entry again after a sleep. A program may read where it may
   only write or execute, because an entry has no bit for that. A page that mprotect has hidden
   comes back as it was. */
/* SOLUTION 6.3 { */
static struct area *area_for(struct space *space, uint32_t address)
{
	struct area *area = area_from(space, address);
	uint32_t start = address & -PAGE_SIZE;

	if (!area || address >= area_start(area))
		return area;
	if (!(area->flags & AREA_STACK) || area->end - start > STACK_LIMIT ||
	    area_from(space, start - STACK_GAP) != area)
		return NULL;
	area_move_start(area, start);
	return area;
}

static int fault_in_zeros(struct space *space, uint32_t *pte, bool write)
{
	void *page = write ? page_alloc(0) : zero_page;

	if (!page)
		return -ENOMEM;
	if (write)
		memset(page, 0, PAGE_SIZE);
	pte_fill(pte, pte_for(page_of(page), write));
	space->pages++;
	return 0;
}

/* Sets the entry, unless another task of the space was faster. The page's reference passes to the
 * entry, or is dropped. */
static int show(struct space *space, uint32_t address, struct page *page, bool writable)
{
	uint32_t *pte = page ? pte_of(space, address, true) : NULL;

	if (pte && !*pte) {
		pte_fill(pte, pte_for(page, writable));
		space->pages++;
		return 0;
	}
	if (page)
		page_release(page);
	return pte ? 0 : -ENOMEM;
}

void space_show(struct space *space, const struct area *area, uint32_t start, uint32_t end)
{
	uint32_t *pte = pte_of(space, start, true), *last = pte + ((end - start) >> PAGE_SHIFT);
	uint32_t *table = pte, index = area_index(area, start), count = 1, shown = 0;
	void *const *pages;

	if (!pte)
		return;
	while (pte < last && (pages = area->object->ops->peek(area->object, index, &count))) {
		if (count > (uint32_t)(last - pte))
			count = last - pte;
		index += count;
		for (uint32_t *next = pte + count; pte < next; pte++, pages++) {
			const void *page = *pages;

			if (*pte || !page)
				continue;
			page_of(page)->references++;
			*pte = physical_address(page) | PTE_PAGE;
			shown++;
		}
	}
	page_of(table)->references += shown;
	space->pages += shown;
}

/* Maps the pages around one that was read, as far as they are in memory: a program that reads one
 * page of a file often reads its neighbours, and a fault takes longer than ten entries.
 */
static void fault_around(struct space *space, const struct area *area, uint32_t address)
{
	uint32_t start = address & -fault_around_bytes, end = start + fault_around_bytes;

	if (start < area_start(area))
		start = area_start(area);
	if (end > area->end)
		end = area->end;
	space_show(space, area, start, end);
}

/* Maps a page of the area's object, or a copy of it. The caller's reference passes to the entry, or
 * is dropped. */
static int show_object(struct space *space, struct area *area, uint32_t address, struct page *page,
		       bool write)
{
	if (!write || (area->flags & AREA_SHARED)) {
		int error = show(space, address, page, write);

		if (!error && !write && area->object->ops->peek)
			fault_around(space, area, address);
		return error;
	}
	struct page *own = page_copy(page);

	page_release(page);
	area->flags |= AREA_COPIED;
	return show(space, address, own, true);
}

/* May sleep in the object, which is held meanwhile. If the area is another one then, nothing is
 * mapped: the access faults again. */
static int fault_in_object(struct space *space, struct area *area, uint32_t address, bool write)
{
	struct memory_object *object = area->object;
	uint32_t index = area_index(area, address), flags = area->flags;
	struct page *page;

	object->ops->hold(object);
	int error = object->ops->page(object, index, write && (flags & AREA_SHARED), &page);

	area = area_find(space, address);
	if (area && area->object == object && area_index(area, address) == index &&
	    ((area->flags ^ flags) & ~AREA_COPIED) == 0) {
		error = error ? error : show_object(space, area, address, page, write);
	} else {
		if (!error)
			page_release(page);
		error = 0;
	}
	object->ops->release(object);
	return error;
}

int space_fault(struct space *space, uint32_t address, bool write, bool may_sleep)
{
	struct area *area;
	int error;

	if (space->large && large_fault(space, address, write, &error))
		return error;
	area = area_for(space, address);
	if (!area)
		return -EFAULT;
	if (!(area->flags & (write ? SPACE_WRITE : SPACE_PROTECTION)))
		return -EACCES;
	uint32_t *pte = pte_of(space, address, !area->object);

	address &= -PAGE_SIZE;
	if (!may_sleep && area->object && (!pte || !*pte || (area->flags & AREA_SHARED)))
		return -EAGAIN;
	if (area->object && (!pte || !*pte))
		return fault_in_object(space, area, address, write);
	if (!pte)
		return -ENOMEM;
	if (!*pte)
		return fault_in_zeros(space, pte, write);
	if (write && !(*pte & PTE_WRITE))
		return copy_on_write(space, area, address, pte);
	pte_set(space, address, pte, *pte | PTE_PRESENT);
	return 0;
}
/* } SOLUTION 6.3 */

uint32_t space_resident(const struct space *space)
{
	return space->pages;
}
