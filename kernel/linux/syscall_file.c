/* System calls of open files: reading and writing, descriptors, ioctl and fcntl. */
#include "fs/file.h"
#include "fs/files.h"
#include "fs/pipe.h"
#include "fs/vfs.h"
#include "kernel/lib/errno.h"
#include "kernel/syscall/syscall.h"
#include "kernel/linux/syscall_file.h"
#include "kernel/process/process.h"
#include "mm/user_copy.h"

#define TRANSFER_MAX 0x7ffff000u /* bytes that one call moves at most, as in Linux */
#define SETTABLE     (O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME)
#define FIONCLEX     0x5450
#define FIOCLEX	     0x5451

#define CLOSE_RANGE_ON_EXEC 4u

static struct file *file_of(uint32_t descriptor)
{
	return files_get(current->process->files, descriptor);
}

static struct file *readable(uint32_t descriptor)
{
	struct file *file = file_of(descriptor);

	return file && file_readable(file) ? file : NULL;
}

static struct file *writable(uint32_t descriptor)
{
	struct file *file = file_of(descriptor);

	return file && file_writable(file) ? file : NULL;
}

/* ---- reading and writing ---- */

/* False for memory that ring 3 cannot have. */
static bool get_buffer(struct buffer *buffer, uint32_t address, uint32_t length)
{
	*buffer = buffer_of_user(address, length < TRANSFER_MAX ? length : TRANSFER_MAX);
	return user_range_ok(address, length);
}

static int sys_read(struct trap_frame *frame)
{
	struct file *file = readable(frame->ebx);
	struct buffer buffer;

	if (!file)
		return -EBADF;
	if (!get_buffer(&buffer, frame->ecx, frame->edx))
		return -EFAULT;
	return file_read(file, &buffer);
}

static int sys_write(struct trap_frame *frame)
{
	struct file *file = writable(frame->ebx);
	struct buffer buffer;

	if (!file)
		return -EBADF;
	if (!get_buffer(&buffer, frame->ecx, frame->edx))
		return -EFAULT;
	return file_write(file, &buffer);
}

/* Runs a transfer for each piece of memory in ring 3's list, until one moves less than it could. At
 * an offset; or where the file's own is, and that moves. */
static int each_vector(struct file *file, uint32_t vectors, uint32_t count, uint64_t offset,
		       int (*transfer)(struct file *, struct buffer *, uint64_t))
{
	uint32_t done = 0;

	if (!file)
		return -EBADF;
	if (count > VECTORS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		struct linux_vector vector;
		struct buffer buffer;
		int moved = -EFAULT;

		if (!copy_from_user(&vector, vectors + i * sizeof(vector), sizeof(vector)) &&
		    get_buffer(&buffer, vector.base, vector.length)) {
			if (buffer.length > TRANSFER_MAX - done)
				buffer.length = TRANSFER_MAX - done;
			moved = buffer.length ? transfer(file, &buffer, offset + done) : 0;
		}
		if (moved < 0)
			return done ? (int32_t)done : moved;
		done += moved;
		if ((uint32_t)moved < vector.length)
			break;
	}
	return done;
}

static int read_here(struct file *file, struct buffer *to, uint64_t unused)
{
	return file_read(file, to);
}

static int write_here(struct file *file, struct buffer *from, uint64_t unused)
{
	return file_write(file, from);
}

CALL(sys_readv, each_vector(readable(frame->ebx), frame->ecx, frame->edx, 0, read_here))
CALL(sys_writev, each_vector(writable(frame->ebx), frame->ecx, frame->edx, 0, write_here))

/* What is wrong with a transfer at an offset of the caller's; 0: nothing. */
static int offset_error(const struct file *file, const struct trap_frame *frame)
{
	if (!file)
		return -EBADF;
	if (file->ops->is_stream)
		return -ESPIPE;
	return (int32_t)frame->edi < 0 ? -EINVAL : 0;
}

static int each_vector_at(struct file *file, const struct trap_frame *frame,
			  int (*transfer)(struct file *, struct buffer *, uint64_t))
{
	int error = offset_error(file, frame);

	if (error)
		return error;
	return each_vector(file, frame->ecx, frame->edx, wide(frame->esi, frame->edi), transfer);
}

CALL(sys_preadv, each_vector_at(readable(frame->ebx), frame, file_read_at))
CALL(sys_pwritev, each_vector_at(writable(frame->ebx), frame, file_write_at))

static int transfer_at(struct file *file, const struct trap_frame *frame,
		       int (*transfer)(struct file *, struct buffer *, uint64_t))
{
	struct buffer buffer;
	int error = offset_error(file, frame);

	if (error)
		return error;
	if (!get_buffer(&buffer, frame->ecx, frame->edx))
		return -EFAULT;
	return transfer(file, &buffer, wide(frame->esi, frame->edi));
}

CALL(sys_pread64, transfer_at(readable(frame->ebx), frame, file_read_at))
CALL(sys_pwrite64, transfer_at(writable(frame->ebx), frame, file_write_at))

/* From one file to another. offset is where ring 3 keeps the offset to read at, in so many bytes;
 * 0: the file's own. */
static int send_file(const struct trap_frame *frame, uint32_t size)
{
	struct file *to = writable(frame->ebx), *from = readable(frame->ecx);
	uint64_t offset = 0;

	if (!to || !from)
		return -EBADF;
	if (from->ops->is_stream || !from->ops->read)
		return -EINVAL;
	if (frame->edx && copy_from_user(&offset, frame->edx, size) != 0)
		return -EFAULT;
	if ((int64_t)offset < 0)
		return -EINVAL;
	uint32_t length = frame->esi < TRANSFER_MAX ? frame->esi : TRANSFER_MAX;
	int moved = file_copy(to, from, frame->edx ? &offset : NULL, length);

	if (moved > 0 && frame->edx && copy_to_user(frame->edx, &offset, size) != 0)
		return -EFAULT;
	return moved;
}

CALL(sys_sendfile, send_file(frame, sizeof(uint32_t)))
CALL(sys_sendfile64, send_file(frame, sizeof(uint64_t)))

/* Moves a file's offset. Returns 0, and the new one in *result. */
static int seek(struct file *file, int64_t distance, uint32_t whence, int64_t *result)
{
	if (!file)
		return -EBADF;
	if (file->ops->is_stream)
		return -ESPIPE;
	if (whence > SEEK_HOLE)
		return -EINVAL;
	if (whence >= SEEK_DATA && (uint64_t)distance >= file->inode->size)
		return -ENXIO;
	int64_t base = whence == SEEK_CUR			   ? (int64_t)file->offset
		       : whence == SEEK_END || whence == SEEK_HOLE ? (int64_t)file->inode->size
								   : 0;

	if (whence == SEEK_HOLE) /* all of it is data, as a file system may say */
		distance = 0;
	if (__builtin_add_overflow(base, distance, result) || *result < 0)
		return -EINVAL;
	file->offset = *result;
	return 0;
}

static int sys_lseek(struct trap_frame *frame)
{
	int64_t offset;
	int error = seek(file_of(frame->ebx), (int32_t)frame->ecx, frame->edx, &offset);

	if (error)
		return error;
	return offset > INT32_MAX ? -EOVERFLOW : (int32_t)offset;
}

static int sys_llseek(struct trap_frame *frame)
{
	int64_t offset;
	int error = seek(file_of(frame->ebx), wide(frame->edx, frame->ecx), frame->edi, &offset);

	if (error)
		return error;
	return give(frame->esi, &offset, sizeof(offset));
}

static int truncate_file(struct file *file, uint64_t size)
{
	if (!file)
		return -EBADF;
	return (int64_t)size < 0 ? -EINVAL : vfs_truncate(file->inode, size);
}

CALL(sys_ftruncate, truncate_file(writable(frame->ebx), (int32_t)frame->ecx))
CALL(sys_ftruncate64, truncate_file(writable(frame->ebx), wide(frame->ecx, frame->edx)))
/* All is in memory: there is nothing to write back, or to advise about. */
CALL(sys_fsync, file_of(frame->ebx) ? 0 : -EBADF)
CALL(sys_sync, 0)

/* ---- descriptors ---- */

CALL(sys_close, files_close(current->process->files, frame->ebx))

/* Closes them, or has exec close them. */
static int sys_close_range(struct trap_frame *frame)
{
	struct files *files = current->process->files;
	uint32_t last = frame->ecx < files->count ? frame->ecx : files->count - 1;

	if (frame->ebx > frame->ecx || frame->edx & ~CLOSE_RANGE_ON_EXEC)
		return -EINVAL;
	for (uint32_t i = frame->ebx; i <= last; i++)
		if (frame->edx)
			files_set_close_on_exec(files, i, true);
		else
			files_close(files, i);
	return 0;
}

static int duplicate(uint32_t descriptor, uint32_t lowest, bool close_on_exec)
{
	struct file *file = file_of(descriptor);

	if (!file)
		return -EBADF;
	int32_t added = files_add(current->process->files, file, lowest, close_on_exec);

	if (added >= 0)
		file_hold(file);
	return added;
}

static int duplicate_to(uint32_t descriptor, uint32_t to, bool close_on_exec)
{
	struct file *file = file_of(descriptor);

	if (!file)
		return -EBADF;
	file_hold(file);
	int32_t added = files_replace(current->process->files, to, file, close_on_exec);

	if (added < 0)
		file_release(file);
	return added;
}

CALL(sys_dup, duplicate(frame->ebx, 0, false))

static int sys_dup2(struct trap_frame *frame)
{
	if (frame->ebx == frame->ecx)
		return file_of(frame->ebx) ? (int32_t)frame->ebx : -EBADF;
	return duplicate_to(frame->ebx, frame->ecx, false);
}

static int sys_dup3(struct trap_frame *frame)
{
	if (frame->ebx == frame->ecx || frame->edx & ~O_CLOEXEC)
		return -EINVAL;
	return duplicate_to(frame->ebx, frame->ecx, frame->edx);
}

/* Gives both ends of a pipe a descriptor, and ring 3 the two numbers. */
static int publish(struct file *reader, struct file *writer, uint32_t address, bool close_on_exec)
{
	struct files *files = current->process->files;
	int32_t numbers[2] = { files_add(files, reader, 0, close_on_exec), -EMFILE };

	if (numbers[0] < 0) {
		file_release(reader);
		file_release(writer);
		return numbers[0];
	}
	numbers[1] = files_add(files, writer, 0, close_on_exec);
	if (numbers[1] < 0)
		file_release(writer);
	else if (!copy_to_user(address, numbers, sizeof(numbers)))
		return 0;
	else
		files_close(files, numbers[1]);
	files_close(files, numbers[0]);
	return numbers[1] < 0 ? numbers[1] : -EFAULT;
}

static int make_pipe(uint32_t address, uint32_t flags)
{
	struct file *reader, *writer;

	if (flags & ~(O_CLOEXEC | O_NONBLOCK | O_DIRECT))
		return -EINVAL;
	int error = pipe_create(flags & O_NONBLOCK, &reader, &writer);

	return error ? error : publish(reader, writer, address, flags & O_CLOEXEC);
}

CALL(sys_pipe, make_pipe(frame->ebx, 0))
CALL(sys_pipe2, make_pipe(frame->ebx, frame->ecx))

static int set_close_on_exec(uint32_t descriptor, bool close_on_exec)
{
	files_set_close_on_exec(current->process->files, descriptor, close_on_exec);
	return 0;
}

static int set_flags(struct file *file, uint32_t flags)
{
	file->flags = (file->flags & ~SETTABLE) | (flags & SETTABLE);
	return 0;
}

static int duplicate_from(uint32_t descriptor, uint32_t lowest, bool close_on_exec)
{
	if (lowest >= current->process->files->limits[LIMIT_FILES].soft)
		return -EINVAL;
	return duplicate(descriptor, lowest, close_on_exec);
}

static int sys_fcntl64(struct trap_frame *frame)
{
	uint32_t descriptor = frame->ebx, argument = frame->edx;
	struct file *file = file_of(descriptor);

	if (!file)
		return -EBADF;
	switch (frame->ecx) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return duplicate_from(descriptor, argument, frame->ecx == F_DUPFD_CLOEXEC);
	case F_GETFD:
		return files_closes_on_exec(current->process->files, descriptor) ? FD_CLOEXEC : 0;
	case F_SETFD:
		return set_close_on_exec(descriptor, argument & FD_CLOEXEC);
	case F_GETFL:
		return file->flags;
	case F_SETFL:
		return set_flags(file, argument);
	case F_GETPIPE_SZ:
		return inode_is(file->inode, S_IFIFO) ? (int32_t)PIPE_CAPACITY : -EBADF;
	}
	return -EINVAL;
}

static int set_nonblocking(struct file *file, uint32_t address)
{
	uint32_t wanted;

	if (copy_from_user(&wanted, address, sizeof(wanted)))
		return -EFAULT;
	return set_flags(file, wanted ? file->flags | O_NONBLOCK : file->flags & ~O_NONBLOCK);
}

static int sys_ioctl(struct trap_frame *frame)
{
	struct file *file = file_of(frame->ebx);

	if (!file)
		return -EBADF;
	switch (frame->ecx) {
	case FIONBIO:
		return set_nonblocking(file, frame->edx);
	case FIOCLEX:
	case FIONCLEX:
		return set_close_on_exec(frame->ebx, frame->ecx == FIOCLEX);
	}
	if (!file->ops->control)
		return -ENOTTY;
	return file->ops->control(file, frame->ecx, frame->edx);
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 3, "read", "dpd", sys_read },
	{ 4, "write", "dpd", sys_write },
	{ 6, "close", "d", sys_close },
	{ 19, "lseek", "ddd", sys_lseek },
	{ 36, "sync", "", sys_sync },
	{ 41, "dup", "d", sys_dup },
	{ 42, "pipe", "p", sys_pipe },
	{ 54, "ioctl", "dxx", sys_ioctl },
	{ 55, "fcntl", "ddx", sys_fcntl64 },
	{ 63, "dup2", "dd", sys_dup2 },
	{ 93, "ftruncate", "dd", sys_ftruncate },
	{ 118, "fsync", "d", sys_fsync },
	{ 140, "_llseek", "dxxpd", sys_llseek },
	{ 145, "readv", "dpd", sys_readv },
	{ 146, "writev", "dpd", sys_writev },
	{ 148, "fdatasync", "d", sys_fsync },
	{ 180, "pread64", "dpdxx", sys_pread64 },
	{ 181, "pwrite64", "dpdxx", sys_pwrite64 },
	{ 187, "sendfile", "ddpd", sys_sendfile },
	{ 194, "ftruncate64", "dxx", sys_ftruncate64 },
	{ 221, "fcntl64", "ddx", sys_fcntl64 },
	{ 239, "sendfile64", "ddpd", sys_sendfile64 },
	{ 250, "fadvise64", "dxxxx", sys_fsync },
	{ 272, "fadvise64_64", "dxxxxx", sys_fsync },
	{ 330, "dup3", "ddo", sys_dup3 },
	{ 331, "pipe2", "po", sys_pipe2 },
	{ 333, "preadv", "dpdxx", sys_preadv },
	{ 334, "pwritev", "dpdxx", sys_pwritev },
	{ 436, "close_range", "ddx", sys_close_range },
};
