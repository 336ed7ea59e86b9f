/* Calls that copy from one file to another: sendfile(2), with an offset of 32 or of 64 bits. */
#include "kernel/abi/file.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/files/calls.h"
#include "kernel/process/process.h"
#include "kernel/syscall/syscall.h"
#include "mm/page_alloc.h"
#include "mm/user_copy.h"

/* Moves the offset by what was written, which may be less than what was read. */
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

/* Copies from an offset on, which is moved; NULL: that of the file. Stops where one of the two
 * gives or takes less, and may be interrupted by a signal. Returns how many bytes. */
static int copy(struct file *to, struct file *from, uint64_t *offset, uint32_t length)
{
	void *page = page_alloc(0);
	uint32_t done = 0;
	int moved = page ? 1 : -ENOMEM;

	offset = offset ? offset : &from->offset;
	while (page && done < length && moved > 0) {
		uint32_t wanted = length - done < PAGE_SIZE ? length - done : PAGE_SIZE;

		moved = copy_page(to, from, offset, page, wanted);
		done += moved > 0 ? moved : 0;
		share_processor();
		if (current->has_signal)
			break;
	}
	if (page)
		page_free(page, 0);
	return done > 0 || moved > 0 ? (int32_t)done : moved;
}

/* From one file to another, from *offset on; NULL: from where the file is. `most` is the last byte
 * that the call can tell of. */
static int send_file(struct file *to, struct file *from, uint64_t *offset, uint32_t length,
		     uint64_t most)
{
	if (!from)
		return -EBADF;
	if (from->ops->is_stream)
		return offset ? -ESPIPE : -EINVAL;
	uint64_t begin = offset ? *offset : from->offset;

	if ((int64_t)begin < 0 || !from->ops->read || inode_is(from->inode, S_IFDIR))
		return -EINVAL;
	if (!to)
		return -EBADF;
	if (to->flags & O_APPEND)
		return -EINVAL;
	if (begin >= most)
		return -EOVERFLOW;
	length = length < TRANSFER_MAX ? length : TRANSFER_MAX;
	if (length > most - begin)
		length = most - begin;
	return end_write(copy(to, from, offset, length));
}

/* EDX is where the program keeps the offset, a signed number of `size` bytes, or 0. It is stored
 * again whatever has happened. */
static int send_from(struct file *to, struct file *from, const struct trap_frame *frame,
		     uint32_t size)
{
	uint64_t most = size == sizeof(int32_t) && frame->edx ? INT32_MAX : INT64_MAX;
	int64_t offset = 0;

	if (!frame->edx)
		return send_file(to, from, NULL, frame->esi, most);
	if (copy_from_user(&offset, frame->edx, size) != 0)
		return -EFAULT;
	if (size == sizeof(int32_t))
		offset = (int32_t)offset;
	int moved = send_file(to, from, (uint64_t *)&offset, frame->esi, most);

	return copy_to_user(frame->edx, &offset, size) ? -EFAULT : moved;
}

FILES_CALL(sys_sendfile, 1, ecx,
	   send_from(file_to_write(file), file_to_read(other), frame, sizeof(int32_t)))
FILES_CALL(sys_sendfile64, 1, ecx,
	   send_from(file_to_write(file), file_to_read(other), frame, sizeof(int64_t)))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 187, "sendfile", "ffpd", sys_sendfile },
	{ 239, "sendfile64", "ffpd", sys_sendfile64 },
};
