/*
 * The operations of a space that is one slot for mmap and /proc.
 *
 *	0x08000000 [program][heap ->            <- mmap][stack] 0x08400000
 *
 * The heap grows up and mmap looks for room from the stack downwards, so both can use all that is
 * between them. Mapping and unmapping only change bits; the memory is always there.
 */
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/space_map.h"
#include "mm/space_slot.h"

/* A word of the bitmap whose 32 pages are all mapped, or all free and all needed, is one step. */
uint32_t space_gap(const struct space *space, uint32_t length)
{
	uint32_t room = 0, count = length / PAGE_SIZE;

	for (uint32_t page = page_of(STACK_START); count > 0 && page-- > 0;) {
		uint32_t word = space->mapped[page / 32];
		bool is_needed = word == 0 && room + 32 <= count;

		if (page % 32 == 31 && (is_needed || word == UINT32_MAX)) {
			room = is_needed ? room + 32 : 0;
			page -= 31;
		} else {
			room = is_mapped(space, page) ? 0 : room + 1;
		}
		if (room == count)
			return SPACE_START + page * PAGE_SIZE;
	}
	return 0;
}

/* Nothing tells one part of the slot from another, so what is mapped after a part is like it. */
int space_extend(struct space *space, uint32_t end, uint32_t more)
{
	return space_map(space, end, more, SPACE_PROTECTION);
}

/* There is one slot, so the bytes are copied in it. */
int space_move(struct space *space, uint32_t from, uint32_t old_length, uint32_t to,
	       uint32_t length)
{
	if (space_map(space, to, length, SPACE_PROTECTION) != 0)
		return -ENOMEM;
	memcpy(space->slot + (to - SPACE_START), space->slot + (from - SPACE_START), old_length);
	space_unmap(space, from, old_length);
	return to;
}

/* Memory that is mapped is all there is: what would come at the next touch is made now. */
void space_forget(struct space *space, uint32_t start, uint32_t end)
{
	memset(space->slot + (start - SPACE_START), 0, end - start);
}

/* Pages outside the slot are not mapped, which is what unmapping them wants. */
int space_unmap(struct space *space, uint32_t address, uint32_t length)
{
	uint32_t first, end;

	if (address % PAGE_SIZE != 0 || length == 0)
		return -EINVAL;
	if (space_pages_of(address, length, &first, &end))
		space_set_mapped(space, first, end, false);
	return 0;
}

/* Accepted and not enforced: a page of 4 MiB has one protection. */
int space_protect(struct space *space, uint32_t address, uint32_t length, unsigned protection)
{
	uint32_t first, end;

	if (address % PAGE_SIZE != 0)
		return -EINVAL;
	if (!space_pages_of(address, length, &first, &end))
		return -ENOMEM;
	while (first < end)
		if (!is_mapped(space, first++))
			return -ENOMEM;
	return 0;
}

/* A slot has no protection, and no files. */
bool space_next_range(const struct space *space, struct space_range *range)
{
	uint32_t page = range->start < SPACE_START ? 0 : page_of(range->start), first;

	while (page < SLOT_PAGES && !is_mapped(space, page))
		page++;
	for (first = page; page < SLOT_PAGES && is_mapped(space, page); page++)
		;
	if (first == page)
		return false;
	if (range->start < SPACE_START + first * PAGE_SIZE)
		range->start = SPACE_START + first * PAGE_SIZE;
	range->end = SPACE_START + page * PAGE_SIZE;
	range->flags = SPACE_PROTECTION;
	return true;
}

/* Through the direct map, so the space need not be the one in use. */
uint32_t space_read(const struct space *space, uint32_t address, void *to, uint32_t length)
{
	struct space_range range = { .start = address };

	if (!space_next_range(space, &range) || range.start != address)
		return 0;
	if (length > range.end - address)
		length = range.end - address;
	memcpy(to, space->slot + (address - SPACE_START), length);
	return length;
}

struct space_sizes space_sizes(const struct space *space)
{
	struct space_sizes sizes = { 0, SLOT_SIZE, SLOT_SIZE };

	for (uint32_t page = 0; page < SLOT_PAGES; page++)
		sizes.mapped += is_mapped(space, page) ? PAGE_SIZE : 0;
	return sizes;
}
