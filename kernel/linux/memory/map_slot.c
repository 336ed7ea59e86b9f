/*
 * Mapping in a space that is one slot, in lessons 3 to 5. All memory is there, and private: a file
 * is read into it, nothing is written back, and no other task sees it.
 */
#include "kernel/linux/call.h"
#include "kernel/linux/memory/mapping.h"

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

/* 0, or why the file cannot be mapped. It is read a byte of: so what cannot be read leaves what is
 * mapped there. */
static int check_file(const struct mapping *mapping, struct file *file)
{
	uint8_t byte;
	struct buffer buffer = buffer_of_kernel(&byte, sizeof(byte));
	bool is_written = (mapping->flags & MAP_SHARED) && (mapping->protection & SPACE_WRITE);

	if (!file_readable(file) || (is_written && !file_writable(file)))
		return -EACCES;
	if (!file->ops->read || file->ops->is_stream || is_written)
		return -ENODEV;
	int result = file_read_at(file, &buffer, (uint64_t)mapping->offset * PAGE_SIZE);

	return result == -EISDIR ? -ENODEV : result < 0 ? result : 0;
}

/* A shared mapping is refused, but for one of a file that is only read. */
int memory_map(const struct mapping *mapping, struct file *file)
{
	struct space *space = current->space;
	int error = file ? check_file(mapping, file) : mapping->flags & MAP_SHARED ? -ENODEV : 0;
	int address =
	    error ? error : mapping_place(mapping, whole_pages(mapping->length), PAGE_SIZE);

	if (is_error(address))
		return address;
	error = space_map(space, address, mapping->length, mapping->protection);
	if (error || !file)
		return error ? error : address;
	error = read_file(mapping, file, address);
	if (is_error(error))
		space_unmap(space, address, mapping->length);
	return error;
}

/* Requests to write back or to keep in memory: there is nothing to do, but the range must be right.
 */
SYSCALL(144, sys_msync, "xdd", space_protect(current->space, frame->ebx, frame->ecx, 0))

static int check_locked(const struct trap_frame *frame)
{
	return space_protect(current->space, frame->ebx & -PAGE_SIZE,
			     frame->ecx + frame->ebx % PAGE_SIZE, 0);
}

/* What is mapped in the slot is in memory, and stays there. */
SYSCALL(150, sys_mlock, "xd", check_locked(frame))
SYSCALL(151, sys_munlock, "xd", check_locked(frame))
SYSCALL(152, sys_mlockall, "x", 0)
SYSCALL(153, sys_munlockall, "", 0)
