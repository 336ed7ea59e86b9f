/* The arguments of mmap, and the functions that the calls about memory share. Lessons 3 to 5, with
 * a space that is one slot, and lesson 6 have their own function for what mmap does: map_slot.c,
 * map_areas.c. */
#pragma once

#include "kernel/abi/mman.h"
#include "kernel/lib/errno.h"
#include "kernel/task/task.h"
#include "mm/space_map.h"
#include "kernel/cpu/memory_layout.h"

/* mmap's arguments, as the old call has them in memory. */
struct mapping {
	uint32_t address, length, protection, flags;
	int descriptor;
	uint32_t offset; /* in pages */
};

struct file;

/* Maps it into the current task's space. The flags and the length are valid. The file is held by
 * the caller; NULL: MAP_ANONYMOUS. Returns the address, or a negated errno. May sleep. */
int memory_map(const struct mapping *mapping, struct file *file);

/* The address where the mapping goes, or a negated errno. The length is rounded up to units, which
 * are pages or large pages, and so is the address that the program wishes. */
static inline int mapping_place(const struct mapping *mapping, uint32_t length, uint32_t unit)
{
	struct space *space = current->space;
	uint32_t more = unit - PAGE_SIZE, address = (mapping->address + more) & -unit;
	bool is_free = address && space_is_free(space, address, length);

	if (mapping->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) {
		if (!space_can_hold(address, length))
			return -ENOMEM;
		return is_free || (mapping->flags & MAP_FIXED) ? (int32_t)address : -EEXIST;
	}
	if (is_free)
		return address;
	address = space_gap(space, length + more);
	return address ? (int32_t)((address + more) & -unit) : -ENOMEM;
}

/* mprotect with PROT_GROWSDOWN: of an area that grows downwards all that is below `start`, too. The
 * new start; 0 if it is another area. */
uint32_t start_of_stack(uint32_t start, uint32_t end) OPTIONAL;

/* Does something with each part of what is mapped in a call's range, which is in its first two
 * arguments. Returns -EINVAL for a start inside a page, -ENOMEM for a range that wraps around; the
 * first error of an action, which ends it; -ENOMEM if there were holes. May sleep as the action
 * does. */
typedef int part_action(const struct space_range *part, struct trap_frame *frame);

static inline int each_part(struct trap_frame *frame, part_action *action)
{
	uint32_t start = frame->ebx, end = start + whole_pages(frame->ecx);
	uint32_t reached = start, holes = 0;

	if (start % PAGE_SIZE)
		return -EINVAL;
	if (end - start < frame->ecx || end < start)
		return -ENOMEM;
	FOR_EACH_PART(part, current->space, start, end) {
		int error = action(&part, frame);

		if (error)
			return error;
		holes += part.start - reached;
		reached = part.end;
	}
	return holes || reached < end ? -ENOMEM : 0;
}

/* Would the program's memory, or its data, be larger than its limit, or in more areas, with this
 * many bytes more of an area with these flags? `instead` of so many that are there (MAP_FIXED). */
bool is_too_much(uint32_t more, uint32_t flags, uint32_t start, uint32_t instead) OPTIONAL;

/* Would there be too much data, if the areas in the range became writable? */
bool would_be_too_much_data(uint32_t start, uint32_t end) OPTIONAL;

/* The stack's limit that getrlimit returns, in bytes, until a program has set it. */
extern const uint32_t usual_stack;
