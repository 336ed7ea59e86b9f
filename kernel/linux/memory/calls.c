/*
 * System calls about memory: their arguments, and what they do with any space. What is mapped is
 * looked at part by part (FOR_EACH_PART), each of one kind; a range may have holes.
 *
 *	a call			this file	mm/space_map.h, for a slot and for areas
 *	mmap			mapping_place	space_gap; memory_map: map_slot.c, map_areas.c
 *	mremap			grow or move	space_extend, space_unmap, space_move
 *	madvise			each part	space_forget
 *	munmap, mprotect	limits		space_unmap, space_protect
 *
 * mmap(2), mremap(2), madvise(2), mprotect(2). All may sleep: an area's last user writes its file
 * back.
 */
#include "kernel/linux/call.h"
#include "kernel/linux/memory/mapping.h"
#include "mm/large_page.h"

#define PROTECTIONS	 (PROT_READ | PROT_WRITE | PROT_EXEC)
#define PROT_GROWSDOWN	 0x1000000u
#define ADVICE_DONT_NEED 4u
#define ADVICE_FREE	 8u
#define ADVICE_LARGE	 14u
#define ADVICE_LAST	 23u
#define ADVICE_REFUSED	 0x41600u /* bits: it would change what a child sees, or a file */

/* ---- mmap and munmap ---- */

/* Shared and private at once is shared, and (MAP_SHARED_VALIDATE) flags that are not known are
 * refused. Files only. */
static int map_pages(struct mapping *mapping)
{
	const uint32_t validate = MAP_SHARED | MAP_PRIVATE, known = MAP_FIXED | MAP_LONG_KNOWN;
	bool is_file = !(mapping->flags & MAP_ANONYMOUS);

	if ((mapping->flags & validate) == validate && is_file) {
		if (mapping->flags & ~(validate | known))
			return -EOPNOTSUPP;
		mapping->flags &= ~MAP_PRIVATE;
	}
	struct file *file = is_file ? file_hold(mapping->descriptor) : NULL;
	uint32_t kind = mapping->flags & validate;
	bool is_fixed = mapping->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
	int result;

	mapping->protection &= PROTECTIONS;
	if (is_file && !file_opened(file))
		result = -EBADF;
	else if (mapping->length == 0 || kind == 0 || kind == validate ||
		 (is_fixed && mapping->address % PAGE_SIZE))
		result = -EINVAL;
	else
		result = memory_map(mapping, file);
	file_drop(file);
	return result;
}

SYSCALL_DEFINE(192, sys_mmap2, "xddxax")
{
	struct mapping mapping = { frame->ebx, frame->ecx, frame->edx,
				   frame->esi, frame->edi, frame->ebp };

	return map_pages(&mapping);
}

/* The old call: one argument, which points to six; the offset is in bytes. */
SYSCALL_DEFINE(90, sys_mmap, "p")
{
	struct mapping mapping;

	if (copy_from_user(&mapping, frame->ebx, sizeof(mapping)) != 0)
		return -EFAULT;
	if (mapping.offset % PAGE_SIZE != 0)
		return -EINVAL;
	mapping.offset /= PAGE_SIZE;
	return map_pages(&mapping);
}

SYSCALL(91, sys_munmap, "xd", space_unmap(current->space, frame->ebx, frame->ecx))

/* ---- mprotect ---- */

/* What becomes data counts as such. */
SYSCALL_DEFINE(125, sys_mprotect, "xdd")
{
	uint32_t protection = frame->edx & ~PROT_GROWSDOWN, start = frame->ebx;
	uint32_t end = start + whole_pages(frame->ecx);

	if (frame->edx & PROT_GROWSDOWN)
		start = start_of_stack ? start_of_stack(start, end) : 0;
	if (protection & ~SPACE_PROTECTION || (!start && frame->ebx))
		return -EINVAL;
	if ((protection & SPACE_WRITE) && would_be_too_much_data &&
	    would_be_too_much_data(start, end))
		return -ENOMEM;
	return space_protect(current->space, start, frame->ecx + (frame->ebx - start), protection);
}

/* ---- mremap ---- */

/* To where the program says, instead of what is there. */
static int remap_to(uint32_t from, uint32_t old_length, uint32_t length, uint32_t to)
{
	struct space *space = current->space;

	if (to % PAGE_SIZE || !space_can_hold(to, length) ||
	    (to < from + old_length && from < to + length))
		return -EINVAL;
	if (space_unmap(space, to, length) != 0 ||
	    (length < old_length && space_unmap(space, from + length, old_length - length) != 0))
		return -ENOMEM;
	return space_move(space, from, length < old_length ? length : old_length, to, length);
}

/* Grows it where it is, or (MREMAP_MAYMOVE) somewhere else. */
static int remap_larger(uint32_t from, uint32_t old_length, uint32_t length, bool may_move)
{
	struct space *space = current->space;
	uint32_t more = length - old_length, end = from + old_length;

	if (space_is_free(space, end, more) && space_extend(space, end, more) == 0)
		return from;
	uint32_t to = may_move ? space_gap(space, length) : 0;

	return to ? space_move(space, from, old_length, to, length) : -ENOMEM;
}

/* The old range must be in one part. */
SYSCALL_DEFINE(163, sys_mremap, "xddx")
{
	uint32_t from = frame->ebx, flags = frame->esi;
	uint32_t old_length = whole_pages(frame->ecx), length = whole_pages(frame->edx);
	struct space_range part = { .start = from };

	if (from % PAGE_SIZE != 0 || old_length == 0 || length == 0 ||
	    (flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) || flags == MREMAP_FIXED)
		return -EINVAL;
	if (!space_next_range(current->space, &part) || part.start != from ||
	    part.end - from < old_length)
		return -EFAULT;
	if (flags & MREMAP_FIXED)
		return remap_to(from, old_length, length, frame->edi);
	if (length <= old_length)
		return length < old_length &&
			       space_unmap(current->space, from + length, old_length - length) != 0
			   ? -ENOMEM
			   : (int32_t)from;
	if (is_too_much && is_too_much(length - old_length, part.flags, 0, 0))
		return -ENOMEM;
	return remap_larger(from, old_length, length, flags & MREMAP_MAYMOVE);
}

/* ---- madvise ---- */

static int advise_part(const struct space_range *part, struct trap_frame *frame)
{
	bool forgets = frame->edx == ADVICE_DONT_NEED, frees = frame->edx == ADVICE_FREE;

	if (((forgets || frees) && (part->flags & RANGE_PINNED)) || (frees && part->object))
		return -EINVAL;
	if (forgets)
		space_forget(current->space, part->start, part->end);
	return 0;
}

/* Most advice changes nothing. What would be more than advice is refused, as by kernels without it.
 */
SYSCALL_DEFINE(219, sys_madvise, "xdd")
{
	uint32_t start = frame->ebx, length = whole_pages(frame->ecx), advice = frame->edx;

	if (advice > ADVICE_LAST || (ADVICE_REFUSED >> advice & 1) || length < frame->ecx ||
	    start + length < start || (advice == ADVICE_LARGE && !large_promote))
		return -EINVAL;
	int error = each_part(frame, advise_part);

	if (!error && advice == ADVICE_LARGE)
		large_promote(current->space, start, start + length);
	return error;
}
