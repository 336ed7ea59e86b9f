/*
 * mlock and its like: memory that is to stay. There is no swap space, so a program's own pages stay
 * anyway; what is left to do is to give it all of them at once, and to tell which memory that is:
 * msync and madvise refuse it, and /proc/PID/smaps and status show it. A clean page of a file may
 * still be given back when memory is short, and comes again when it is touched.
 *
 * An area is pinned as a whole (AREA_PINNED), so a range that begins or ends inside one splits it.
 * Only area_protect does that: the range gets a mark besides its protection, which keeps it apart
 * from its neighbours, then the bit; and the mark goes, which lets equal neighbours be one again.
 * https://man7.org/linux/man-pages/man2/mlock.2.html
 */
#include "kernel/linux/memory/pinned.h"

#include "kernel/linux/call.h"
#include "mm/area.h"
#include "mm/fault.h"
#include "mm/large_page.h"
#include "mm/space_map.h"

#define AREA_MARKED 512u

#define MLOCK_ONFAULT 1u
#define MCL_CURRENT   1u
#define MCL_FUTURE    2u
#define MCL_ONFAULT   4u

#define TURN (1u << 20) /* bytes, after which others may run */

/* Gives the current task's program every page of [start, end), whole pages, as if it had touched
 * it: for writing, where it may write and the memory is its own. Ends at the first that it cannot
 * have. Returns 0; -ENOMEM, where nothing is mapped, or no page; -EAGAIN without memory. May sleep,
 * and lets others run. */
static int populate(uint32_t start, uint32_t end)
{
	for (; start < end; start += PAGE_SIZE) {
		const struct area *area = area_find(current->space, start);
		uint32_t own = SPACE_WRITE | AREA_SHARED;
		int error = area ? space_fault(current->space, start,
					       (area->flags & own) == SPACE_WRITE, true)
				 : -EFAULT;

		if (error)
			return error == -ENOMEM ? -EAGAIN : -ENOMEM;
		if (start % TURN == 0)
			yield();
	}
	return 0;
}

/* Makes [start, end), a part of one area, pinned or (0) not. Returns 0 or -ENOMEM. */
static int pin_part(struct space *space, uint32_t start, uint32_t end, uint32_t pinned)
{
	uint32_t protection = area_find(space, start)->flags & SPACE_PROTECTION;

	if (area_protect(space, start, end, protection | AREA_MARKED) != 0)
		return -ENOMEM;
	struct area *area = area_find(space, start);

	area->flags = (area->flags & ~(AREA_MARKED | AREA_PINNED)) | pinned;
	return area_protect(space, start, end, protection);
}

/* Each part of areas in the range, up to the first hole if `whole`. Large pages stay without it, as
 * on Linux. */
static int pin(struct space *space, uint32_t start, uint32_t end, uint32_t pinned, bool whole)
{
	uint32_t reached = start;

	FOR_EACH_PART(part, space, start, end) {
		if (part.start > reached && whole)
			return -ENOMEM;
		reached = part.end;
		if (!(part.flags & AREA_LARGE) && (part.flags & AREA_PINNED) != pinned &&
		    pin_part(space, part.start, part.end, pinned) != 0)
			return -ENOMEM;
	}
	return reached < end && whole ? -ENOMEM : 0;
}

void pin_areas(uint32_t start, uint32_t end, bool pinned, bool populated)
{
	const struct space *space = current->space;

	if (pinned || (space->pinning & PINS_NEW))
		pin(current->space, start, end, AREA_PINNED, true);
	if (pinned || populated || (space->pinning & (PINS_NEW | PINS_LAZILY)) == PINS_NEW)
		populate(start, end);
}

/* mlock's range is rounded out to pages. -EINVAL if it wraps around, -ENOMEM at the first hole;
 * what is before that is pinned. */
static int pin_range(const struct trap_frame *frame, uint32_t pinned, bool populated)
{
	uint32_t start = frame->ebx & -PAGE_SIZE;
	uint32_t end = (frame->ecx + frame->ebx + PAGE_SIZE - 1) & -PAGE_SIZE;

	if (frame->ecx + frame->ebx % PAGE_SIZE > -PAGE_SIZE || end < start)
		return -EINVAL;
	int error = pin(current->space, start, end, pinned, true);

	return error || !populated ? error : populate(start, end);
}

SYSCALL(150, sys_mlock, "xd", pin_range(frame, AREA_PINNED, true))
SYSCALL(151, sys_munlock, "xd", pin_range(frame, 0, false))
SYSCALL(376, sys_mlock2, "xdx",
	frame->edx & ~MLOCK_ONFAULT ? -EINVAL : pin_range(frame, AREA_PINNED, frame->edx == 0))

/* What cannot be populated is left out: only mlock says so. */
SYSCALL_DEFINE(152, sys_mlockall, "x")
{
	struct space *space = current->space;
	uint32_t flags = frame->ebx;

	if ((flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) || flags == 0 ||
	    flags == MCL_ONFAULT)
		return -EINVAL;
	space->pinning &= ~(PINS_NEW | PINS_LAZILY);
	space->pinning |= flags & MCL_FUTURE ? PINS_NEW : 0;
	space->pinning |= flags & MCL_ONFAULT ? PINS_LAZILY : 0;
	if (!(flags & MCL_CURRENT))
		return 0;
	int error = pin(space, 0, STACK_END, AREA_PINNED, false);

	if (error || (flags & MCL_ONFAULT))
		return error;
	FOR_EACH_PART(part, space, 0, STACK_END)
		populate(part.start, part.end);
	return 0;
}

/* Areas that come later are not pinned either. */
SYSCALL_DEFINE(153, sys_munlockall, "")
{
	current->space->pinning = 0;
	return pin(current->space, 0, STACK_END, 0, false);
}
