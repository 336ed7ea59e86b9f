/*
 * Areas: the memory that a program has asked for, in a tree sorted by start address.
 *
 * munmap, mmap over something, and the end of a program are all the same: a cut. Everything in the
 * range is removed, and one of four things happens to each area that the range touches:
 *
 *	range			      [==============]
 *	area in the middle	   [a-|--------------|-a']	two areas are left: needs memory
 *	its tail is cut		[a----|---]			ends earlier
 *	its head is cut			       [-----|--a]	begins later
 *	all of it			  [---]			is removed
 *
 * Only the first needs memory, and then the range touches no other area. So a cut that fails has
 * changed nothing.
 *
 * Two neighbours become one area if they have the same flags and the same object, and the upper
 * one's pages of the object follow those of the lower one. So a program that asks for memory page
 * by page has one area, and asking costs no memory.
 *
 * Called by the task whose space it is, or for a space that no task uses. The last reference to an
 * object may sleep, while other threads change the same space. So nothing is released in the middle
 * of a change: discarded areas that have an object wait until the change is complete.
 */
#include "mm/area.h"

#include "kernel/lib/errno.h"
#include "mm/page_table.h"
#include "mm/pool.h"
#include "mm/space_layout.h"

static struct pool areas = POOL_INITIALIZER(struct area);
static struct tree_node *discarded; /* linked by `left` */

static struct area *area_of(struct tree_node *node)
{
	return (struct area *)node; /* the node is the first member */
}

/* Inserts an area that is complete, with a reference to its object, into its space. */
static void insert(struct space *space, struct area *area)
{
	area->space = space;
	if (area->object) {
		area->object->ops->hold(area->object);
		list_append(&area->object->areas, &area->in_object);
	}
	tree_insert(&space->areas, &area->node);
	space->size += area->end - area_start(area);
	space->count++;
	space->recent = area;
}

/* The reverse. The area is freed; if it has an object, release_discarded does that later. */
static void discard(struct area *area)
{
	struct space *space = area->space;

	space->size -= area->end - area_start(area);
	space->count--;
	space->recent = NULL;
	tree_remove(&space->areas, &area->node);
	if (!area->object) {
		pool_free(&areas, area);
		return;
	}
	list_remove(&area->in_object);
	area->node.left = discarded;
	discarded = &area->node;
}

/* May sleep: call it at the end of a change. Meanwhile other tasks may discard areas, too. */
static void release_discarded(void)
{
	struct tree_node *node = discarded;

	discarded = NULL;
	while (node) {
		struct area *area = area_of(node);

		node = node->left;
		area->object->ops->release(area->object);
		pool_free(&areas, area);
	}
}

int area_copy(struct space *to, const struct area *area)
{
	struct area *copy = pool_alloc(&areas);

	if (!copy)
		return -ENOMEM;
	*copy = *area;
	copy->flags &= ~AREA_PINNED; /* a child's memory is not: mlock(2) */
	insert(to, copy);
	return 0;
}

void area_move_start(struct area *area, uint32_t start)
{
	struct space *space = area->space;

	tree_remove(&space->areas, &area->node);
	space->size += area_start(area) - start;
	area->index = area_index(area, start);
	area->node.key = start;
	tree_insert(&space->areas, &area->node);
}

/* EXERCISE 6.2 (areas): see mm/area.h for the contracts, and the drawing above.

   - area_find, area_from, area_gap use the tree (kernel/lib/tree.h): their time grows with its
     depth. area_gap takes one more step for each area that it passes.
   - area_cut, area_put, area_protect: afterwards no two areas overlap, no two neighbours could be
     one, and space->size is the sum of all areas. page_unmap_range unmaps the pages of a range that
     is cut; page_protect_range takes rights away from those that stay.
   - given: insert, discard, release_discarded, area_move_start.

   Pitfalls: get all memory that is needed before anything changes; area_put needs none where the
   area below only has to grow. The tree finds a node by its key: only area_move_start may change a
   start. A later start is a later page of the object, too. Two areas of one object are one only if
   its pages continue. AREA_COPIED says what has happened to an area, not what it is: two areas that
   differ in nothing else become one, and then it is set. A change that has discarded areas ends
   with release_discarded: that may sleep, and another thread then finds the areas as they are. */
/* SOLUTION 6.2 { */
/* ---- looking ---- */

struct area *area_find(const struct space *space, uint32_t address)
{
	struct area *area = space->recent;

	if (area && address >= area_start(area) && address < area->end)
		return area;
	area = area_of(tree_at_most(space->areas, address));
	if (!area || address >= area->end)
		return NULL;
	((struct space *)space)->recent = area; /* only a cache: the space does not change */
	return area;
}

/* In the order of their starts areas are in that of their ends, too. */
struct area *area_from(const struct space *space, uint32_t address)
{
	struct area *area = space->recent, *best = NULL;

	if (area && address >= area_start(area) && address < area->end)
		return area;
	for (area = area_of(space->areas); area;) {
		if (area->end > address)
			best = area;
		area = area_of(best == area ? area->node.left : area->node.right);
	}
	return best;
}

uint32_t area_gap(const struct space *space, uint32_t low, uint32_t high, uint32_t length)
{
	while (high >= low && high - low >= length) {
		struct area *below = area_of(tree_at_most(space->areas, high - 1));

		if (!below || below->end <= high - length)
			return high - length;
		high = area_start(below);
	}
	return 0;
}

/* ---- splitting and joining ---- */

/* Does the upper form continue the lower area? */
static bool continues(const struct area *lower, const struct area *upper)
{
	return ((lower->flags ^ upper->flags) & ~AREA_COPIED) == 0 &&
	       lower->object == upper->object &&
	       (!lower->object || area_index(lower, lower->end) == upper->index);
}

/* Makes an area begin at `at`, if one contains it. */
static int split(struct space *space, uint32_t at)
{
	struct area *area = area_find(space, at);

	if (!area || area_start(area) == at)
		return 0;
	struct area *upper = pool_alloc(&areas);

	if (!upper)
		return -ENOMEM;
	*upper = *area;
	upper->node.key = at;
	upper->index = area_index(area, at);
	space->size -= area->end - at;
	area->end = at;
	insert(space, upper);
	return 0;
}

/* Makes one area of this one (or NULL) and the one above it, if they can be one. */
static void join(struct area *lower)
{
	struct area *upper = lower ? area_find(lower->space, lower->end) : NULL;

	if (!upper || !continues(lower, upper))
		return;
	uint32_t end = upper->end;

	lower->flags |= upper->flags;
	discard(upper);
	lower->space->size += end - lower->end;
	lower->end = end;
	release_discarded();
}

/* ---- changing ---- */

/* Removes the part of an area that is in the range, and not in the middle of the area. */
static void cut_area(struct area *area, uint32_t start, uint32_t end)
{
	struct space *space = area->space;
	uint32_t first = start > area_start(area) ? start : area_start(area);
	uint32_t last = end < area->end ? end : area->end;

	page_unmap_range(space, first, last);
	if (first > area_start(area)) {
		space->size -= last - first;
		area->end = first;
	} else if (last < area->end) {
		area_move_start(area, last);
	} else {
		discard(area);
	}
}

static int cut_areas(struct space *space, uint32_t start, uint32_t end)
{
	struct area *area = area_from(space, start);

	if (area && area_start(area) < start && area->end > end && split(space, end) != 0)
		return -ENOMEM;
	while (area && area_start(area) < end) {
		uint32_t next = area->end;

		cut_area(area, start, end);
		area = next < end ? area_of(tree_at_least(space->areas, next)) : NULL;
	}
	return 0;
}

int area_cut(struct space *space, uint32_t start, uint32_t end)
{
	int error = cut_areas(space, start, end);

	release_discarded();
	return error;
}

/* Lets the area below (or NULL) grow over [start, end), which is free, if that is what *form asks
 * for. */
static bool extend(struct area *lower, uint32_t start, uint32_t end, const struct area *form)
{
	if (!lower || lower->end != start || !continues(lower, form))
		return false;
	lower->space->size += end - start;
	lower->end = end;
	join(lower);
	return true;
}

int area_put(struct space *space, uint32_t start, uint32_t end, const struct area *form)
{
	struct area *lower = area_of(tree_at_most(space->areas, start - 1));
	const struct area *next = area_of(tree_at_least(space->areas, start));
	bool is_free = (!lower || lower->end <= start) && (!next || area_start(next) >= end);

	if (is_free && extend(lower, start, end, form))
		return 0;
	struct area *area = pool_alloc(&areas);

	if (!area)
		return -ENOMEM;
	if (!is_free && cut_areas(space, start, end) != 0) {
		pool_free(&areas, area);
		return -ENOMEM;
	}
	area->node.key = start;
	area->end = end;
	area->flags = form->flags;
	area->object = form->object;
	area->index = form->index;
	insert(space, area);
	if (!is_free || (next && area_start(next) == end))
		join(area);
	if (!is_free)
		join(area_find(space, start - 1));
	release_discarded();
	return 0;
}

static int split_both(struct space *space, uint32_t start, uint32_t end)
{
	if (split(space, start) != 0)
		return -ENOMEM;
	if (split(space, end) == 0)
		return 0;
	join(area_find(space, start - 1));
	return -ENOMEM;
}

int area_protect(struct space *space, uint32_t start, uint32_t end, uint32_t protection)
{
	if (split_both(space, start, end) != 0)
		return -ENOMEM;
	for (uint32_t at = start; at < end;) {
		struct area *area = area_find(space, at);
		uint32_t next = area->end;

		area->flags = (area->flags & ~SPACE_PROTECTION) | protection;
		join(area_find(space, at - 1));
		at = next;
	}
	join(area_find(space, end - 1));
	page_protect_range(space, start, end, protection);
	return 0;
}
/* } SOLUTION 6.2 */
