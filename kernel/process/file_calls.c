/*
 * System calls for files: opening, reading, writing, and working with descriptors.
 *
 * A descriptor is an index into the process's table; the table holds a reference to the open file,
 * which has the offset. So two descriptors of one open file share an offset, and two that were
 * opened separately do not:
 *
 *	descriptor 3 --.
 *	descriptor 4 ----> struct file, offset 12 --> /etc/passwd
 *	descriptor 5 ----> struct file, offset 0 ---> /etc/passwd
 *
 * Every call checks in this order, as Linux does: the descriptor (-EBADF), the memory's range
 * (-EFAULT), and then what the file says. Memory is touched by the file's operations only, through
 * a struct buffer. All run for the current task, on its kernel stack, and may sleep.
 */
#include "kernel/process/file_calls.h"

#include "fs/path_page.h"
#include "fs/root.h"
#include "kernel/abi/limits.h"
#include "kernel/abi/unistd.h"
#include "kernel/process/held_call.h"
#include "kernel/process/signal.h"

/* ---- reading and writing ---- */

/* A transfer is cut to TRANSFER_MAX, as Linux does; the whole range must be user memory. */
bool buffer_from_call(struct buffer *buffer, uint32_t address, uint32_t length)
{
	*buffer = buffer_of_user(address, length < TRANSFER_MAX ? length : TRANSFER_MAX);
	return user_range_ok(address, length);
}

/* Common to read and write: the memory's range is checked before the file's operation is called. */
static inline int transfer(struct file *file, bool is_allowed, const struct trap_frame *frame,
			   int (*move)(struct file *file, struct buffer *buffer))
{
	struct buffer buffer;

	if (!is_allowed)
		return -EBADF;
	if (!buffer_from_call(&buffer, frame->ecx, frame->edx))
		return -EFAULT;
	return move(file, &buffer);
}

/* A broken pipe also sends SIGPIPE, which ends most programs. */
int end_write(int result)
{
	if (result == -EPIPE)
		signal_send(current->process, SIGPIPE);
	return result;
}

/* A short count is normal: read returns what is there, and 0 at the end of the file. */
OFFSET_CALL(sys_read, transfer(file, file &&file_readable(file), frame, file_read))
OFFSET_CALL(sys_write, end_write(transfer(file, file &&file_writable(file), frame, file_write)))

/* Beyond the end is allowed: a write there leaves a hole. */
int file_seek(struct file *file, int64_t distance, uint32_t whence, int64_t *result)
{
	if (!file)
		return -EBADF;
	if (file->ops->is_stream)
		return -ESPIPE;
	if (whence > SEEK_END)
		return -EINVAL;
	int64_t base = whence == SEEK_CUR   ? (int64_t)file->offset
		       : whence == SEEK_END ? (int64_t)file_size(file)
					    : 0;

	if (__builtin_add_overflow(base, distance, result) || *result < 0)
		return -EINVAL;
	file->offset = *result;
	return 0;
}

/* The distance has 64 bits and comes in two registers, the upper half first; the result goes to
 * memory. */
static int seek_wide(struct file *file, const struct trap_frame *frame)
{
	int64_t offset;
	int error = (file_seek_more ? file_seek_more : file_seek)(
	    file, wide(frame->edx, frame->ecx), frame->edi, &offset);

	return error ? error : give(frame->esi, &offset, sizeof(offset));
}

OFFSET_CALL(sys_llseek, seek_wide(file, frame))

/* ---- opening and closing ---- */

/* A copy: a program that changes the text meanwhile changes nothing (time of check to time of use).
 * The page is the caller's only after success. */
int path_from_user(uint32_t address, char **path)
{
	char *page = path_page();
	int length = page ? string_from_user(page, address, PATH_MAX) : -ENOMEM;

	if (length < 0)
		path_page_free(page);
	else
		*path = page;
	return length < 0 ? length : 0;
}

/* Without a number that is left no new file is made. */
static int sys_open(struct trap_frame *frame)
{
	struct file *file;
	char *path;
	int error = path_from_user(frame->ebx, &path);

	if (error)
		return error;
	error = files_add(current->process->files, NULL, 0, false);
	if (error >= 0)
		error = file_open(current->process->files, path, frame->ecx, frame->edx, &file);
	path_page_free(path);
	return error < 0 ? error : descriptor_add(file, frame->ecx);
}

CALL(sys_close, files_close(current->process->files, frame->ebx))

/* Takes over the reference, also when it fails. */
int descriptor_add(struct file *file, uint32_t flags)
{
	int added = files_add(current->process->files, file, 0, flags & O_CLOEXEC);

	if (added < 0)
		file_release(file);
	return added;
}

/* The meaning of a command and its argument depends on the file. */
int file_control(struct file *file, uint32_t command, uint32_t argument)
{
	if (!file)
		return -EBADF;
	return file->ops->control ? file->ops->control(file, command, argument) : -ENOTTY;
}

FILE_CALL(sys_ioctl, file &&ioctl_of_all ? ioctl_of_all(file, frame)
					 : file_control(file, frame->ecx, frame->edx))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 3, "read", "Fpd", sys_read },	   { 4, "write", "Fpd", sys_write },
	{ 5, "open", "soo", sys_open },	   { 6, "close", "d", sys_close },
	{ 54, "ioctl", "fxx", sys_ioctl }, { 140, "_llseek", "Fxxpd", sys_llseek },
};
