/*
 * Areas: the memory that a program has asked for. An area is a range of whole pages with one
 * protection and one origin. The areas of a space do not overlap, and two neighbours that could be
 * one area are one.
 */
#pragma once

#include "kernel/cpu/memory_layout.h"
#include "kernel/lib/tree.h"
#include "mm/memory_object.h"

struct space;

/* Bits of an area besides SPACE_READ, SPACE_WRITE and SPACE_EXECUTE (mm/space.h). */
#define AREA_SHARED 8u	 /* all spaces see what one of them writes; fork does not copy it */
#define AREA_STACK  16u	 /* grows downwards when it is touched there */
#define AREA_COPIED 32u	 /* may map copies of its object's pages, which are the program's own */
#define AREA_LOCKED 64u	 /* can never be written to: shared, of a file open for reading only */
#define AREA_PINNED 256u /* mlock: what the program touches, or has, is to stay in memory */

struct area {
	struct tree_node node; /* its key is the start */
	uint32_t end;	       /* the first address after it */
	uint32_t flags;
	struct memory_object *object; /* one reference; NULL: zeros */
	uint32_t index;		      /* of the object's page at the start */
	struct space *space;
	struct list in_object; /* in object->areas */
};

static inline uint32_t area_start(const struct area *area)
{
	return area->node.key;
}

/* The number of the object's page at an address of the area. */
static inline uint32_t area_index(const struct area *area, uint32_t address)
{
	return area->index + ((address - area_start(area)) >> PAGE_SHIFT);
}

/* The area that holds an address; the first one that ends after it; or NULL. */
struct area *area_find(const struct space *space, uint32_t address);
struct area *area_from(const struct space *space, uint32_t address);

/* The highest address in [low, high) at which `length` bytes below `high` are in no area; or 0. */
uint32_t area_gap(const struct space *space, uint32_t low, uint32_t high, uint32_t length);

/*
 * Puts an area at [start, end), with the flags, object and index of *form, in place of whatever was
 * there. Takes a reference to the object. Addresses are multiples of the page size, start < end.
 * Needs no memory if nothing is there and the area below can grow over the range. Returns 0; or
 * -ENOMEM, and nothing has changed.
 */
int area_put(struct space *space, uint32_t start, uint32_t end, const struct area *form);

/* Puts a copy of an area at the same place in another space, which has no area there: without
 * AREA_PINNED, which no child has (mlock(2)). It stays apart from its neighbours. Returns 0 or
 * -ENOMEM. */
int area_copy(struct space *to, const struct area *area);

/* Removes the parts of areas in [start, end), and the pages there. Returns 0; or -ENOMEM, and
 * nothing has changed: that can only happen when the range is in the middle of one area. */
int area_cut(struct space *space, uint32_t start, uint32_t end);

/* Changes the protection (bits of SPACE_*) in [start, end), which areas cover without a gap.
 * Returns 0; or -ENOMEM, and nothing has changed. */
int area_protect(struct space *space, uint32_t start, uint32_t end, uint32_t protection);

/* Moves the start of an area: down over free addresses, or up over pages that have been unmapped.
 */
void area_move_start(struct area *area, uint32_t start);
