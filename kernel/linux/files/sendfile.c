/*
 * sendfile(2): copies from one file to another, from an offset of 32 or of 64 bits.
 *
 * The bytes go through one page of the kernel, so a call that moves much sleeps often; it gives the
 * processor up between two pages, and ends early for a signal. The offset is the program's
 * variable, which moves, or (a null pointer) the file's own.
 */
#include "kernel/linux/files/calls.h"

#define SENDFILE 187 /* the number of the call with 32 bits */

/* The page is the kernel's, so neither copy faults. Moves the offset by what was written, which may
 * be less than what was read. */
static int copy_page(struct file *to, struct file *from, uint64_t *offset, void *page,
		     uint32_t length)
{
	struct buffer buffer = buffer_of_kernel(page, length);
	int read = file_read_at(from, &buffer, *offset);

	if (read <= 0)
		return read;
	buffer = buffer_of_kernel(page, read);
	struct claim *lock = to->ops->is_stream ? NULL : file_offset_lock(to);
	int written = file_write(to, &buffer);

	if (lock)
		claim_give(lock);
	if (written > 0)
		*offset += written;
	return written;
}

/* Copies from an offset on, which is moved. Stops where one of the two gives or takes less, and may
 * be interrupted by a signal. Returns how many bytes. */
static int copy_pages(struct file *to, struct file *from, uint64_t *offset, uint32_t length)
{
	char *page CLEANUP(path_page_release) = path_page();
	uint32_t done = 0;
	int moved = page ? 1 : -ENOMEM;

	while (done < length && moved > 0) {
		uint32_t wanted = length - done < PAGE_SIZE ? length - done : PAGE_SIZE;

		moved = copy_page(to, from, offset, page, wanted);
		done += moved > 0 ? moved : 0;
		share_processor();
		if (current->has_signal)
			break;
	}
	return done > 0 || moved > 0 ? (int32_t)done : moved;
}

/* Checks, in Linux's order, and copies. `most` is the last byte that the call can tell of. */
static int send_checked(struct file *to, struct file *from, uint64_t *offset, uint32_t length,
			uint64_t most)
{
	if (!from)
		return -EBADF;
	if (from->ops->is_stream)
		return offset == &from->offset ? -EINVAL : -ESPIPE;
	if ((int64_t)*offset < 0 || !from->ops->read || inode_is(from->inode, S_IFDIR))
		return -EINVAL;
	if (!to)
		return -EBADF;
	if (to->flags & O_APPEND)
		return -EINVAL;
	if (*offset >= most)
		return -EOVERFLOW;
	length = length < TRANSFER_MAX ? length : TRANSFER_MAX;
	return end_write(
	    copy_pages(to, from, offset, length < most - *offset ? length : most - *offset));
}

/* EDX is where the program keeps the offset, a signed number of 32 or 64 bits, or 0. It is stored
 * again whatever has happened. */
static int send_file(struct file *to, struct file *from, const struct trap_frame *frame)
{
	bool is_narrow = frame->eax == SENDFILE;
	uint32_t size = is_narrow ? sizeof(int32_t) : sizeof(int64_t);
	uint64_t offset = 0;

	if (!frame->edx)
		return send_checked(to, from, from ? &from->offset : NULL, frame->esi, INT64_MAX);
	if (copy_from_user(&offset, frame->edx, size) != 0)
		return -EFAULT;
	if (is_narrow)
		offset = (int32_t)offset;
	int moved = send_checked(to, from, &offset, frame->esi, is_narrow ? INT32_MAX : INT64_MAX);

	return copy_to_user(frame->edx, &offset, size) ? -EFAULT : moved;
}

FILES_CALL(sys_sendfile, 1, ecx, send_file(file_to_write(file), file_to_read(other), frame))
SYSCALL_ROW(187, sys_sendfile, "ffpd")
SYSCALL_ROW_OF(239, sys_sendfile64, "ffpd", sys_sendfile)
