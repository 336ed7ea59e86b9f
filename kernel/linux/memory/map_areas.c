/*
 * Mapping by areas, from lesson 6 on: mmap, brk, msync and mincore. An area maps an object (a file,
 * or shared memory), or private zeros. Its pages come when they are touched (mm/fault.c).
 *
 * mmap(2), brk(2), msync(2), mincore(2). All but mincore may sleep.
 */
#include "fs/devices.h"
#include "fs/file_memory.h"
#include "fs/memory/ramfs_memory.h"
#include "fs/vfs/inode.h"
#include "kernel/linux/call.h"
#include "kernel/linux/memory/mapping.h"
#include "kernel/linux/memory/pinned.h"
#include "mm/area.h"
#include "mm/large_page.h"
#include "mm/page_table.h"

/* Flags of mmap(2) that only areas can have. MAP_NONBLOCK takes the effect of MAP_POPULATE away, as
 * on Linux since 2.6.23. */
#define MAP_GROWSDOWN  0x100u
#define MAP_LOCKED     0x2000u
#define MAP_POPULATE   0x8000u
#define MAP_NONBLOCK   0x10000u
#define MAP_HUGETLB    0x40000u
#define MAP_SIZE_SHIFT 26 /* of the flags: log2 of the size of a page; 0: the usual one */

/* ---- brk ---- */

/* Returns the new break, or the old one: a break that cannot be set stays where it is. Memory that
 * is borrowed (vfork) has the break of its owner. Clearing memory may sleep: without the claim
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

/* ---- mmap ---- */

/* Zeros: of no file, or of /dev/zero, which is memory of its own each time that it is mapped. */
static bool is_zeros(const struct file *file)
{
	return !file ||
	       (file->ops->read == device_read_zeros && file->ops->write == device_write_away);
}

/* Finds the object that is mapped, with a reference, and the flags that it gives the area; none for
 * private zeros. -EACCES as mmap(2) has it, -ENODEV for a file that cannot be mapped, -ENOMEM. */
static int find_object(const struct mapping *mapping, struct file *file, uint32_t length,
		       struct area *form)
{
	bool is_shared = mapping->flags & MAP_SHARED;

	if (file) {
		bool is_written = is_shared && file_writable(file);

		if (!file_readable(file) ||
		    (is_shared && (mapping->protection & SPACE_WRITE) && !is_written))
			return -EACCES;
		if (is_written && file->inode && file->inode->is_append_only)
			return -EACCES; /* mprotect could allow writing later */
		form->flags |= is_shared && !is_written ? AREA_LOCKED : 0;
	}
	if (is_zeros(file)) {
		form->index = 0;
		if (is_shared)
			form->object = ramfs_shared_memory(length);
		return is_shared && !form->object ? -ENOMEM : 0;
	}
	form->object = file_memory(file);
	return form->object ? 0 : -ENODEV;
}

/* Can the mapping be of large pages: private zeros of a size that there is? The upper bits of the
 * flags may name the size. */
static bool is_large(const struct mapping *mapping, const struct file *file)
{
	uint32_t size = mapping->flags >> MAP_SIZE_SHIFT;

	return !file && (mapping->flags & MAP_PRIVATE) && (size == 0 || size == LARGE_SHIFT) &&
	       mapping->length <= -LARGE_PAGE;
}

/* The area, of whole units, and what its flags want at once. A failure leaves nothing in the range.
 */
static int put_mapping(uint32_t start, uint32_t end, const struct area *form,
		       const struct mapping *mapping)
{
	const uint32_t both = MAP_POPULATE | MAP_NONBLOCK;
	int error = area_put(current->space, start, end, form);

	if (!error && (form->flags & AREA_LARGE)) {
		error = large_map(current->space, start, end);
		if (error)
			area_cut(current->space, start, end);
	}
	if (error)
		return error;
	space_some_grow |= (form->flags & AREA_STACK) != 0;
	pin_new(start, end, mapping->flags & MAP_LOCKED, (mapping->flags & both) == MAP_POPULATE);
	return start;
}

/* With MAP_HUGETLB whole 4 MiB, as Linux's hugetlb has them. The object is found before there is a
 * place for it, and the area takes a reference of its own. What is mapped there already stays
 * unless all of it succeeds. */
int memory_map(const struct mapping *mapping, struct file *file)
{
	uint32_t unit = mapping->flags & MAP_HUGETLB ? LARGE_PAGE : PAGE_SIZE;
	uint32_t length = (mapping->length + unit - 1) & -unit;
	bool is_shared = mapping->flags & MAP_SHARED, grows = mapping->flags & MAP_GROWSDOWN;
	bool is_fixed = mapping->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
	struct area form = { .flags = mapping->protection | (is_shared ? AREA_SHARED : 0) |
				      (grows ? AREA_STACK : 0) |
				      (unit == LARGE_PAGE ? AREA_LARGE : 0),
			     .index = mapping->offset };

	if ((grows && (is_shared || file)) ||
	    (unit == LARGE_PAGE &&
	     (!is_large(mapping, file) || (is_fixed && mapping->address % unit))))
		return -EINVAL;
	if (length == 0 || is_too_much(length, form.flags, mapping->address,
				       mapping->flags & MAP_FIXED ? length : 0))
		return -ENOMEM;
	if (form.index + (length >> PAGE_SHIFT) < form.index)
		return -EOVERFLOW;
	int result = find_object(mapping, file, length, &form);

	if (result)
		return result;
	result = mapping_place(mapping, length, unit);
	if (!is_error(result))
		result = put_mapping(result, result + length, &form, mapping);
	if (form.object)
		form.object->ops->release(form.object);
	return result;
}

/* Without an area there, or with a start that mprotect refuses anyway, the range is as it was: then
 * space_protect says what is wrong. */
uint32_t start_of_stack(uint32_t start, uint32_t end)
{
	const struct area *area = area_find(current->space, start);

	if (end <= start || !area || start % PAGE_SIZE)
		return start;
	return area->flags & AREA_STACK ? area_start(area) : 0;
}

/* ---- msync and mincore ---- */

/* The object is held, because it may sleep. */
static int sync_part(const struct space_range *part, struct trap_frame *frame)
{
	struct memory_object *object = part->object;
	uint32_t pages = (part->end - part->start) >> PAGE_SHIFT;

	if ((frame->edx & MS_INVALIDATE) && (part->flags & AREA_PINNED))
		return -EBUSY;
	if (!(part->flags & AREA_SHARED) || !object || !object->ops->sync)
		return 0;
	object->ops->hold(object);
	int error = object->ops->sync(object, part->index, part->index + pages);

	object->ops->release(object);
	return error;
}

/* MS_ASYNC waits, too: Linux's would be written later. */
SYSCALL(144, sys_msync, "xdd",
	(frame->edx & ~(MS_ASYNC | MS_INVALIDATE | MS_SYNC)) ||
		(frame->edx & (MS_ASYNC | MS_SYNC)) == (MS_ASYNC | MS_SYNC)
	    ? -EINVAL
	    : each_part(frame, sync_part))

/* Would a read of the page do without a disk? */
static bool is_in_memory(const struct space_range *part, uint32_t address)
{
	if (large_entry(current->space, address))
		return true;
	const uint32_t *pte = pte_of(current->space, address, false);

	return (pte && *pte) || space_peek(part, address);
}

/* A byte for each page: 1, it is in memory. Those of holes keep their value. */
static int tell_part(const struct space_range *part, struct trap_frame *frame)
{
	uint32_t to = frame->edx + ((part->start - frame->ebx) >> PAGE_SHIFT);

	for (uint32_t at = part->start; at < part->end; at += PAGE_SIZE) {
		uint8_t there = is_in_memory(part, at);

		if (give(to++, &there, sizeof(there)) != 0)
			return -EFAULT;
	}
	return 0;
}

SYSCALL(218, sys_mincore, "xdx", each_part(frame, tell_part))
