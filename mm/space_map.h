/* More operations of an address space: for mmap, munmap and mprotect, and for what /proc shows. */
#pragma once

#include "mm/space.h"

/* Where there is room for a mapping of this length, whole pages: the highest address below the
 * stack and its room to grow. 0: nowhere, or no length. */
uint32_t space_gap(const struct space *space, uint32_t length);

/* Unmaps whole pages; pages that are not mapped are skipped. Returns 0, or -EINVAL for an address
 * inside a page and for no length. */
int space_unmap(struct space *space, uint32_t address, uint32_t length);

/* For mremap. Maps `more` bytes from `end` on, where nothing is mapped, of the kind of what ends
 * there. Returns 0 or -ENOMEM. */
int space_extend(struct space *space, uint32_t end, uint32_t more);

/* The same: what is mapped in [from, from + old_length) is at `to` afterwards, with `length` bytes,
 * no less; what was there goes. The two do not overlap. Returns `to`; or -ENOMEM, and what was
 * mapped at `from` still is. */
int space_move(struct space *space, uint32_t from, uint32_t old_length, uint32_t to,
	       uint32_t length);

/* The mapped pages of [start, end) are as they were before the first touch: zero, or the file's.
 * May sleep. */
void space_forget(struct space *space, uint32_t start, uint32_t end);

/* Changes the protection of mapped pages. Returns 0, -EINVAL, -ENOMEM if part of it is not mapped,
 * or -EACCES if that part maps a file that may not be written. What is before that part is done.
 */
int space_protect(struct space *space, uint32_t address, uint32_t length, unsigned protection);

/* Copies from any space what is mapped there, up to the first page that is not. Returns how many
 * bytes. */
uint32_t space_read(const struct space *space, uint32_t address, void *to, uint32_t length);

/* A mapped range of one kind. Its flags are SPACE_*, and of an area the AREA_* of mm/area.h, of
 * which these two are for those that know no areas. */
#define RANGE_SHARED 8u	  /* what is written there others see */
#define RANGE_PINNED 256u /* by mlock */

struct memory_object;

struct space_range {
	uint32_t start, end, flags;
	uint32_t index;		      /* of the object's page at the start; 0 without an object */
	struct memory_object *object; /* whose pages it maps, or NULL */
};

/* Finds the first range that ends after range->start, without what is below that address. Returns
 * false if there is none. */
bool space_next_range(const struct space *space, struct space_range *range);

/* The same, of what is below `end`. */
static inline bool space_next_part(const struct space *space, struct space_range *part,
				   uint32_t end)
{
	if (part->start >= end || !space_next_range(space, part) || part->start >= end)
		return false;
	part->end = part->end < end ? part->end : end;
	return true;
}

/* All that is mapped in [first, limit), part by part; holes are passed over. It goes on by
 * addresses, so the body may sleep, and change what is mapped. */
#define FOR_EACH_PART(part, space, first, limit)                                                   \
	for (struct space_range part = { .start = (first) };                                       \
	     space_next_part(space, &(part), limit); (part).start = (part).end)

/* The page of a range's object at an address, if it is in memory; or NULL. Does not sleep. */
void *space_peek(const struct space_range *range, uint32_t address);

/* What a range has in memory, in bytes. What only this space maps is private. */
struct space_use {
	uint32_t resident, share; /* share: of each page the part of one of those that map it */
	uint32_t shared[2], private[2]; /* clean, dirty */
	uint32_t referenced, anonymous; /* anonymous: not its object's */
	uint32_t large, large_pool[2];	/* by large pages: promoted; of MAP_HUGETLB, private or
					   shared, which are in no other sum */
};

struct space_use space_use_of(const struct space *space, const struct space_range *range);

/* Bytes of a space: what is mapped, what of it is in memory, and the most that ever was. */
struct space_sizes {
	uint32_t mapped, resident, most;
};

struct space_sizes space_sizes(const struct space *space);

/* How many areas a space may have, as far as mmap, munmap, mprotect, mremap and brk make them:
 * /proc/sys/vm/max_map_count. */
extern uint32_t space_areas_most;

/* Has a program mapped memory that grows downwards? Then space_gap leaves room below it. */
extern bool space_some_grow;
