/* System calls about memory: Linux's, as far as a space can do them. */
#include "kernel/abi/mman.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/files/calls.h"
#include "kernel/linux/memory/calls.h"
#include "kernel/syscall/syscall.h"
#include "kernel/process/process.h"
#include "mm/user_copy.h"
#include "mm/page_alloc.h"
#include "mm/space_map.h"

#define ADVICE_DONT_NEED 4u
#define ADVICE_LAST	 23u
#define ADVICE_REFUSED	 0x45600u /* bits: it would change what a child sees, or a file */

const uint32_t usual_stack = SPACE_STACK;

/* Puts the file's bytes into memory that is mapped already; it ends with the file. */
static int read_file(const struct mapping *mapping, struct file *file, uint32_t address)
{
	struct buffer buffer = buffer_of_user(address, mapping->length);
	uint64_t offset = (uint64_t)mapping->offset * PAGE_SIZE;
	int count;

	while (buffer.length > 0 && (count = file_read_at(file, &buffer, offset)) != 0) {
		if (count < 0)
			return count;
		offset += count;
	}
	return address;
}

/* Returns the address where the mapping is now. */
static inline int place(const struct mapping *mapping)
{
	struct space *space = current->space;
	bool is_fixed = mapping->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
	bool is_free = mapping->address % PAGE_SIZE == 0 && mapping->address &&
		       space_is_free(space, mapping->address, mapping->length);

	if (!is_fixed && !is_free)
		return space_map_anywhere(space, mapping->length, mapping->protection);
	if ((mapping->flags & MAP_FIXED_NOREPLACE) && !is_free)
		return space_can_hold(mapping->address, mapping->length) ? -EEXIST : -ENOMEM;
	int error = space_map(space, mapping->address, mapping->length, mapping->protection);

	return error ? error : (int32_t)mapping->address;
}

/* Reads a byte before anything changes: so what cannot be read leaves what is mapped there. */
static int map_file(const struct mapping *mapping, struct file *file)
{
	uint8_t byte;
	struct buffer buffer = buffer_of_kernel(&byte, sizeof(byte));
	int result = file_read_at(file, &buffer, (uint64_t)mapping->offset * PAGE_SIZE);

	if (result < 0)
		return result == -EISDIR ? -ENODEV : result;
	int address = place(mapping);

	if (is_error(address))
		return address;
	result = read_file(mapping, file, address);
	if (is_error(result))
		space_unmap(current->space, address, mapping->length);
	return result;
}

/* Memory is private until lesson 6: nothing is written back, and no other task sees it. So a shared
 * mapping is refused, but for one of a file that is only read. */
int memory_map(const struct mapping *mapping, struct file *file)
{
	bool is_shared = mapping->flags & MAP_SHARED, is_file = !(mapping->flags & MAP_ANONYMOUS);

	if (mapping->length == 0 || is_shared == !!(mapping->flags & MAP_PRIVATE) ||
	    ((mapping->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) && mapping->address % PAGE_SIZE))
		return -EINVAL;
	if (!is_file)
		return is_shared ? -ENODEV : place(mapping);
	bool is_written = is_shared && (mapping->protection & SPACE_WRITE);

	if (!file)
		return -EBADF;
	if (!file_readable(file) || (is_written && !file_writable(file)))
		return -EACCES;
	if (!file->ops->read || file->ops->is_stream || is_written)
		return -ENODEV;
	return map_file(mapping, file);
}

/* Moves what is mapped at from to a larger place. */
static int move(uint32_t from, uint32_t old_length, uint32_t new_length)
{
	int32_t to = space_map_anywhere(current->space, new_length, SPACE_READ | SPACE_WRITE);
	struct buffer buffer = buffer_of_user(to, old_length);

	if (is_error(to))
		return to;
	/* Both are in this space, so the program's address of the source is the kernel's as well.
	 */
	if (!user_range_ok(from, old_length) ||
	    buffer_put(&buffer, (const void *)(uintptr_t)from, old_length) < 0)
		return -EFAULT;
	space_unmap(current->space, from, old_length);
	return to;
}

static int sys_mremap(struct trap_frame *frame)
{
	uint32_t address = frame->ebx, flags = frame->esi;
	uint32_t old_length = whole_pages(frame->ecx), new_length = whole_pages(frame->edx);

	if (address % PAGE_SIZE != 0 || old_length == 0 || new_length == 0 ||
	    (flags & ~MREMAP_MAYMOVE))
		return -EINVAL;
	if (space_protect(current->space, address, old_length, SPACE_READ | SPACE_WRITE) != 0)
		return -EFAULT;
	if (new_length <= old_length) {
		if (new_length < old_length)
			space_unmap(current->space, address + new_length, old_length - new_length);
		return address;
	}
	uint32_t more = new_length - old_length;

	if (space_is_free(current->space, address + old_length, more) &&
	    space_map(current->space, address + old_length, more, SPACE_READ | SPACE_WRITE) == 0)
		return address;
	return flags & MREMAP_MAYMOVE ? move(address, old_length, new_length) : -ENOMEM;
}

/* Most advice changes nothing. After DONTNEED the memory is zero; what else would be more than
 * advice (REMOVE, DONTFORK, MERGEABLE, HUGEPAGE, WIPEONFORK) is refused, as by kernels without it.
 */
static int sys_madvise(struct trap_frame *frame)
{
	uint32_t address = frame->ebx, length = whole_pages(frame->ecx);
	int error = space_protect(current->space, address, length, 0);

	if (frame->edx > ADVICE_LAST || (ADVICE_REFUSED >> frame->edx & 1))
		return -EINVAL;
	if (!error && frame->edx == ADVICE_DONT_NEED && clear_user(address, length) != 0)
		return -EFAULT;
	return error;
}

CALL(sys_mprotect, frame->edx & ~SPACE_PROTECTION
		       ? -EINVAL
		       : space_protect(current->space, frame->ebx, frame->ecx, frame->edx))

/* Requests to write back or to keep in memory: there is nothing to do, but the range must be right.
 */
CALL(sys_nothing, space_protect(current->space, frame->ebx, frame->ecx, 0))
CALL(sys_mlock,
     space_protect(current->space, frame->ebx & -PAGE_SIZE, frame->ecx + frame->ebx % PAGE_SIZE, 0))

CALL(sys_mlockall, 0)

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 125, "mprotect", "xdd", sys_mprotect }, { 144, "msync", "xdd", sys_nothing },
	{ 150, "mlock", "xd", sys_mlock },	  { 151, "munlock", "xd", sys_mlock },
	{ 152, "mlockall", "x", sys_mlockall },	  { 153, "munlockall", "", sys_mlockall },
	{ 163, "mremap", "xddx", sys_mremap },	  { 219, "madvise", "xdd", sys_madvise },
};
