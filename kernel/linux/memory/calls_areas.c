/* System calls about memory, from lesson 6 on: Linux's, by changes of areas. */
#include "fs/devices.h"
#include "fs/file_memory.h"
#include "fs/files.h"
#include "fs/memory/ramfs_memory.h"
#include "kernel/abi/mman.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/memory/limits.h"
#include "kernel/linux/memory/pinned.h"
#include "kernel/linux/files/calls.h"
#include "kernel/linux/memory/calls.h"
#include "kernel/process/process.h"
#include "kernel/syscall/syscall.h"
#include "mm/page_table.h"
#include "mm/area.h"
#include "mm/large_page.h"
#include "mm/space_layout.h"
#include "mm/space_map.h"
#include "mm/user_copy.h"

#define ADVICE_DONT_NEED 4u
#define ADVICE_FREE	 8u
#define ADVICE_LARGE	 14u
#define ADVICE_LAST	 23u
#define ADVICE_REFUSED	 0x41600u /* bits: it would change what a child sees, or a file */
#define MAP_HIGHEST	 (STACK_END - STACK_LIMIT - STACK_GAP)

#define MAP_GROWSDOWN  0x100u
#define PROT_GROWSDOWN 0x1000000u
#define MAP_LOCKED     0x2000u
#define MAP_POPULATE   0x8000u
#define MAP_NONBLOCK   0x10000u
#define MAP_HUGETLB    0x40000u
#define MAP_SIZE_SHIFT 26 /* of the flags: log2 of the size of a page; 0: the usual one */

/* A break that cannot be set stays where it is. Clearing memory may sleep: without the claim
 * another task of the program would see the old break meanwhile. */
uint32_t program_set_break(uint32_t address)
{
	struct process *owner = current->process->leader;

	while (owner->is_borrowing)
		owner = owner->parent->leader;
	claim_take(&owner->setting_break);
	uint32_t old = space_set_break(current->space, 0), now = old;

	if (address <= old ||
	    !is_too_much(whole_pages(address) - whole_pages(old), SPACE_WRITE, 0, 0))
		now = space_set_break(current->space, address);
	claim_give(&owner->setting_break);
	if (now > old)
		pin_new(whole_pages(old), whole_pages(now), false, false);
	return now;
}

static bool some_grow; /* has a program asked for MAP_GROWSDOWN? */

/* Where there is room for a mapping, not directly below what may grow downwards; or 0. */
static uint32_t gap(const struct space *space, uint32_t length)
{
	uint32_t address = area_gap(space, SPACE_LOWEST, MAP_HIGHEST, length);
	const struct area *above;

	while (some_grow && address && (above = area_find(space, address + length)) &&
	       (above->flags & AREA_STACK))
		address =
		    area_start(above) < STACK_GAP
			? 0
			: area_gap(space, SPACE_LOWEST, area_start(above) - STACK_GAP, length);
	return address;
}

/* The address where the mapping goes, or a negated errno. */
static int place(const struct mapping *mapping, uint32_t length)
{
	struct space *space = current->space;
	uint32_t address = mapping->address & -PAGE_SIZE;
	bool is_free = address && space_is_free(space, address, length);

	if (mapping->flags & MAP_FIXED)
		return space_can_hold(address, length) ? (int32_t)address : -ENOMEM;
	if (mapping->flags & MAP_FIXED_NOREPLACE)
		return is_free				 ? (int32_t)address
		       : space_can_hold(address, length) ? -EEXIST
							 : -ENOMEM;
	if (is_free)
		return address;
	address = gap(space, length);
	return address ? (int32_t)address : -ENOMEM;
}

/* Zeros: of no file, or of /dev/zero, which is memory of its own each time that it is mapped. */
static bool is_zeros(const struct mapping *mapping, const struct file *file)
{
	return (mapping->flags & MAP_ANONYMOUS) ||
	       (file->ops->read == device_read_zeros && file->ops->write == device_write_away);
}

/* Finds the object that is mapped, with a reference; none for private zeros. */
static int find_object(const struct mapping *mapping, struct file *file, uint32_t length,
		       struct area *form)
{
	bool is_shared = mapping->flags & MAP_SHARED;

	if (!(mapping->flags & MAP_ANONYMOUS)) {
		bool is_written = is_shared && file_writable(file);

		if (!file_readable(file) ||
		    (is_shared && (mapping->protection & SPACE_WRITE) && !is_written))
			return -EACCES;
		if (is_written && file->inode && file->inode->is_append_only)
			return -EACCES; /* mprotect could allow writing later */
		form->flags |= is_shared && !is_written ? AREA_LOCKED : 0;
	}
	if (is_zeros(mapping, file)) {
		form->index = 0;
		if (is_shared)
			form->object = ramfs_shared_memory(length);
		return is_shared && !form->object ? -ENOMEM : 0;
	}
	form->object = file_memory(file);
	return form->object ? 0 : -ENODEV;
}

/* MAP_HUGETLB: whole 4 MiB, as Linux's hugetlb has them; the upper bits of the flags may name the
 * size. Here of private zeros only. A failure leaves nothing in the range. */
static int map_large(struct mapping mapping)
{
	uint32_t length = (mapping.length + LARGE_PAGE - 1) & -LARGE_PAGE;
	uint32_t size = mapping.flags >> MAP_SIZE_SHIFT, place_for = length;
	bool is_fixed = mapping.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
	const struct area form = { .flags = mapping.protection | AREA_LARGE };

	if ((mapping.flags & (MAP_ANONYMOUS | MAP_SHARED | MAP_PRIVATE)) !=
		(MAP_ANONYMOUS | MAP_PRIVATE) ||
	    length == 0 || (size != 0 && size != LARGE_SHIFT) ||
	    (is_fixed && mapping.address % LARGE_PAGE))
		return -EINVAL;
	mapping.address = (mapping.address + LARGE_PAGE - 1) & -LARGE_PAGE;
	if (!is_fixed && !space_is_free(current->space, mapping.address, length)) {
		mapping.address = 0;
		place_for += LARGE_PAGE - PAGE_SIZE;
	}
	int address = place_for < length ? -ENOMEM : place(&mapping, place_for);

	if (is_error(address))
		return address;
	address = (address + LARGE_PAGE - 1) & -LARGE_PAGE;
	int error = area_put(current->space, address, address + length, &form);

	if (!error && (error = large_map(current->space, address, address + length)) != 0)
		area_cut(current->space, address, address + length);
	return error ? error : address;
}

int memory_map(const struct mapping *mapping, struct file *file)
{
	uint32_t length = (mapping->length + PAGE_SIZE - 1) & -PAGE_SIZE;
	bool is_shared = mapping->flags & MAP_SHARED, grows = mapping->flags & MAP_GROWSDOWN;
	bool populated = (mapping->flags & (MAP_POPULATE | MAP_NONBLOCK)) == MAP_POPULATE;
	struct area form = { .flags = mapping->protection | (is_shared ? AREA_SHARED : 0) |
				      (grows ? AREA_STACK : 0),
			     .index = mapping->offset };

	if (!(mapping->flags & MAP_ANONYMOUS) && !file)
		return -EBADF;
	if (mapping->length == 0 || is_shared == !!(mapping->flags & MAP_PRIVATE) ||
	    ((mapping->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) &&
	     mapping->address % PAGE_SIZE) ||
	    (grows && (is_shared || file)))
		return -EINVAL;
	if (mapping->flags & MAP_HUGETLB)
		return map_large(*mapping);
	if (length == 0 || is_too_much(length, form.flags, mapping->address,
				       mapping->flags & MAP_FIXED ? length : 0))
		return -ENOMEM;
	if (form.index + (length >> PAGE_SHIFT) < form.index)
		return -EOVERFLOW;
	int error = find_object(mapping, file, length, &form);

	if (error)
		return error;
	int address = place(mapping, length);

	error = is_error(address) ? address
				  : area_put(current->space, address, address + length, &form);
	if (form.object)
		form.object->ops->release(form.object);
	if (error)
		return error;
	some_grow |= grows;
	pin_new(address, address + length, mapping->flags & MAP_LOCKED, populated);
	return address;
}

/* Is all of it in areas? */
static int check(uint32_t address, uint32_t length)
{
	uint32_t size = whole_pages(length), end = address + size;
	const struct area *area;

	if (address % PAGE_SIZE)
		return -EINVAL;
	if (size < length || end < address)
		return -ENOMEM;
	while (address < end && (area = area_find(current->space, address)))
		address = area->end;
	return address < end ? -ENOMEM : 0;
}

/* An entry that may move alone: a large page is split. NULL: there is none. */
static uint32_t *small_entry(const struct space *space, uint32_t address)
{
	return pte_of(space, address, large_entry(space, address) != 0);
}

/* The pages move: their entries are written elsewhere. Returns how far it came, in bytes: without
 * memory for a table not to the end. */
static uint32_t move_pages(struct space *space, uint32_t from, uint32_t to, uint32_t length)
{
	for (uint32_t at = 0; at < length; at += PAGE_SIZE) {
		uint32_t *old = small_entry(space, from + at);

		if (!old || !*old)
			continue;
		uint32_t *new = pte_of(space, to + at, true);

		if (!new)
			return at;
		old =
		    pte_of(space, from + at, false); /* which may have been given back meanwhile */
		if (!old || !*old)
			continue;
		pte_set(space, to + at, new, *old);
		pte_set(space, from + at, old, 0);
	}
	return length;
}

/* All of them or none. For the way back there are tables: those that were empty are kept. */
static int move(const struct area *area, uint32_t from, uint32_t old_length, uint32_t new_length,
		uint32_t to)
{
	struct space *space = current->space;
	struct area form = *area;

	form.index += (from - area_start(area)) >> PAGE_SHIFT;
	if (!to || area_put(space, to, to + new_length, &form) != 0)
		return -ENOMEM;
	uint32_t moved = move_pages(space, from, to, old_length);

	if (moved == old_length && area_cut(space, from, from + old_length) == 0)
		return to;
	move_pages(space, to, from, moved);
	area_cut(space, to, to + new_length);
	return -ENOMEM;
}

/* To where the program says, instead of what is there. */
static int move_there(uint32_t from, uint32_t old_length, uint32_t new_length, uint32_t to)
{
	struct space *space = current->space;

	if (to % PAGE_SIZE || to < SPACE_LOWEST || !user_range_ok(to, new_length) ||
	    (to < from + old_length && from < to + new_length))
		return -EINVAL;
	if (area_cut(space, to, to + new_length) != 0 ||
	    (new_length < old_length && area_cut(space, from + new_length, from + old_length) != 0))
		return -ENOMEM;
	return move(area_find(space, from), from, new_length < old_length ? new_length : old_length,
		    new_length, to);
}

static int sys_mremap(struct trap_frame *frame)
{
	uint32_t address = frame->ebx, flags = frame->esi;
	uint32_t old_length = (frame->ecx + PAGE_SIZE - 1) & -PAGE_SIZE;
	uint32_t new_length = (frame->edx + PAGE_SIZE - 1) & -PAGE_SIZE;
	struct area *area = area_find(current->space, address);

	if (address % PAGE_SIZE != 0 || old_length == 0 || new_length == 0 ||
	    (flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) || flags == MREMAP_FIXED)
		return -EINVAL;
	if (!area || area->end - address < old_length)
		return -EFAULT;
	if (flags & MREMAP_FIXED)
		return move_there(address, old_length, new_length, frame->edi);
	if (new_length <= old_length)
		return new_length < old_length && area_cut(current->space, address + new_length,
							   address + old_length) != 0
			   ? -ENOMEM
			   : (int32_t)address;
	uint32_t more = new_length - old_length;
	struct area form = *area;

	if (is_too_much(more, area->flags, 0, 0))
		return -ENOMEM;
	form.index += (address + old_length - area_start(area)) >> PAGE_SHIFT;
	if (space_is_free(current->space, address + old_length, more) &&
	    area_put(current->space, address + old_length, address + new_length, &form) == 0)
		return address;
	if (!(flags & MREMAP_MAYMOVE))
		return -ENOMEM;
	return move(area, address, old_length, new_length,
		    area_gap(current->space, SPACE_LOWEST, MAP_HIGHEST, new_length));
}

/* The pages of all areas in the range go; holes are passed over. Those before one that is pinned,
 * then: -EINVAL. */
static int forget(uint32_t start, uint32_t end, uint32_t advice)
{
	const struct area *area;

	while (start < end && (area = area_from(current->space, start)) && area_start(area) < end) {
		uint32_t from = start > area_start(area) ? start : area_start(area);

		start = end < area->end ? end : area->end;
		if (area->flags & AREA_PINNED || (advice == ADVICE_FREE && area->object))
			return -EINVAL;
		if (advice == ADVICE_DONT_NEED)
			page_unmap_range(current->space, from, start);
	}
	return 0;
}

static int sys_madvise(struct trap_frame *frame)
{
	uint32_t address = frame->ebx, length = whole_pages(frame->ecx), advice = frame->edx;
	int error = check(address, frame->ecx);

	if (advice > ADVICE_LAST || (ADVICE_REFUSED >> advice & 1) || length < frame->ecx ||
	    address + length < address)
		return -EINVAL;
	if (error != -EINVAL && (advice == ADVICE_DONT_NEED || advice == ADVICE_FREE) &&
	    forget(address, address + length, advice) != 0) /* what is there, also if not all is */
		return -EINVAL;
	if (!error && advice == ADVICE_LARGE)
		large_promote(current->space, address, address + length);
	return error;
}

/* The object is held, because it may sleep. */
static int sync(struct memory_object *object, uint32_t first, uint32_t end)
{
	if (!object || !object->ops->sync)
		return 0;
	object->ops->hold(object);
	int error = object->ops->sync(object, first, end);

	object->ops->release(object);
	return error;
}

/* By addresses: while one area is written back, others may come and go. */
static int sys_msync(struct trap_frame *frame)
{
	uint32_t start = frame->ebx, end = start + whole_pages(frame->ecx);
	int error = check(start, frame->ecx);
	const struct area *area;

	if ((frame->edx & ~(MS_ASYNC | MS_INVALIDATE | MS_SYNC)) ||
	    (frame->edx & (MS_ASYNC | MS_SYNC)) == (MS_ASYNC | MS_SYNC))
		return -EINVAL;
	if (end < start && !error)
		return -ENOMEM;
	while (start < end && (area = area_from(current->space, start)) && area_start(area) < end) {
		uint32_t from = start > area_start(area) ? start : area_start(area);
		uint32_t to = end < area->end ? end : area->end;
		int failed = 0;

		start = to;
		if ((frame->edx & MS_INVALIDATE) && (area->flags & AREA_PINNED))
			return -EBUSY;
		if (area->flags & AREA_SHARED)
			failed = sync(area->object, area_index(area, from), area_index(area, to));
		error = error ? error : failed;
	}
	return error;
}

/* Would reading the page have to wait for a disk? */
static bool is_in_memory(const struct area *area, uint32_t address)
{
	uint32_t large = large_entry(current->space, address);
	const uint32_t *pte = large ? &large : pte_of(current->space, address, false);
	struct memory_object *object = area->object;
	uint32_t count = 0;

	if ((pte && *pte) || !object || !object->ops->peek)
		return pte && *pte;
	void *const *pages = object->ops->peek(object, area_index(area, address), &count);

	return pages && count > 0 && *pages;
}

/* A byte for each page: is it in memory? */
static int sys_mincore(struct trap_frame *frame)
{
	uint32_t start = frame->ebx, pages = whole_pages(frame->ecx) >> PAGE_SHIFT;
	int error = check(start, frame->ecx);

	for (uint32_t i = 0; !error && i < pages; i++) {
		uint32_t address = start + (i << PAGE_SHIFT);
		const struct area *area = area_find(current->space, address);
		uint8_t there = area && is_in_memory(area, address);

		error = copy_to_user(frame->edx + i, &there, 1) != 0 ? -EFAULT : 0;
	}
	return error;
}

/* With PROT_GROWSDOWN: of a stack all that is below, too. The new start, or 0. */
static uint32_t start_below(uint32_t start, uint32_t end)
{
	const struct area *area = area_find(current->space, start);

	if (end <= start || !area || start % PAGE_SIZE)
		return start;
	return area->flags & AREA_STACK ? area_start(area) : 0;
}

/* What becomes data counts as such. */
static int sys_mprotect(struct trap_frame *frame)
{
	uint32_t protection = frame->edx & ~PROT_GROWSDOWN, start = frame->ebx;
	uint32_t end = start + whole_pages(frame->ecx);

	if (protection & ~SPACE_PROTECTION)
		return -EINVAL;
	if ((frame->edx & PROT_GROWSDOWN) && (start = start_below(start, end)) == 0)
		return -EINVAL;
	if ((protection & SPACE_WRITE) && would_be_too_much_data(start, end))
		return -ENOMEM;
	return space_protect(current->space, start, frame->ecx + (frame->ebx - start), protection);
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 125, "mprotect", "xdd", sys_mprotect }, { 144, "msync", "xdd", sys_msync },
	{ 163, "mremap", "xddx", sys_mremap },	  { 218, "mincore", "xdx", sys_mincore },
	{ 219, "madvise", "xdd", sys_madvise },
};
