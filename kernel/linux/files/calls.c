/* Calls for open files that only Linux's programs make: vectors, the caller's offsets, sizes, and
 * the ioctl commands that all files have. */
#include "fs/files.h"
#include "fs/vfs/mounting.h"
#include "fs/vfs/vfs.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/unistd.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/files/calls.h"
#include "kernel/process/process.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/sched.h"
#include "mm/page_alloc.h"
#include "mm/user_copy.h"

#define FIONCLEX 0x5450
#define FIOCLEX	 0x5451

#define DIRECT_UNIT	  512u /* O_DIRECT: addresses and lengths are multiples of it */
#define ADVICE_READ_AHEAD 3u
#define ADVICE_LAST	  5u /* of posix_fadvise: to be used once */
#define AT_ONCE		  4u /* a stream gets up to 2^4 pages of vectors in one piece: a pipe's */

/* ---- vectors and offsets ---- */

const struct message_ops *message_ops;

/* Is something wrong with any piece of a program's list? Then nothing is moved. A length is
 * signed. *total becomes that of all pieces, or TRANSFER_MAX if they have more. */
static int vectors_error(uint32_t vectors, uint32_t count, uint32_t *total)
{
	*total = 0;
	struct linux_vector vector;

	if (count > VECTORS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		if (copy_from_user(&vector, vectors + i * sizeof(vector), sizeof(vector)))
			return -EFAULT;
		if ((int32_t)vector.length < 0)
			return -EINVAL;
		if (!user_range_ok(vector.base, vector.length))
			return -EFAULT;
		*total =
		    vector.length < TRANSFER_MAX - *total ? *total + vector.length : TRANSFER_MAX;
	}
	return 0;
}

struct file *file_of_pool(struct anonymous *kind, const struct file_ops *ops, struct pool *pool,
			  uint32_t flags)
{
	void *private = pool_alloc(pool);
	struct file *file = private ? anonymous_file(kind, ops, private, flags) : NULL;

	if (private && !file)
		pool_free(pool, private);
	return file;
}

/* Runs a transfer for each piece of memory in a program's list, until one moves less than it could,
 * when `done` bytes of the first one have been moved. */
static int each_piece(struct file *file, uint32_t vectors, uint32_t count, uint64_t offset,
		      uint32_t done, int (*transfer)(struct file *, struct buffer *, uint64_t))
{
	uint32_t skip = done;

	for (uint32_t i = 0; i < count; i++) {
		struct linux_vector vector;
		struct buffer buffer;
		int moved = -EFAULT;

		if (!copy_from_user(&vector, vectors + i * sizeof(vector), sizeof(vector)) &&
		    buffer_from_call(&buffer, vector.base, vector.length)) {
			uint32_t gone = skip < vector.length ? skip : vector.length;

			buffer.address += gone;
			buffer.length -= gone;
			vector.length -= gone;
			skip -= gone;
			if (buffer.length > TRANSFER_MAX - done)
				buffer.length = TRANSFER_MAX - done;
			moved = buffer.length ? transfer(file, &buffer, offset + done) : 0;
		}
		if (moved < 0)
			return done ? (int32_t)done : moved;
		done += moved;
		if ((uint32_t)moved < vector.length)
			break;
		share_processor();
	}
	return done;
}

/* Is some piece of a list not as O_DIRECT wants it? *first becomes one that is not empty. */
static bool is_unaligned(uint32_t vectors, uint32_t count, struct linux_vector *first)
{
	struct linux_vector vector;
	uint32_t bits = 0;

	while (count-- > 0) {
		if (copy_from_user(&vector, vectors + count * sizeof(vector), sizeof(vector)) ||
		    vector.length == 0)
			continue;
		bits |= vector.base | vector.length;
		*first = vector;
	}
	return bits % DIRECT_UNIT;
}

static int write_here(struct file *file, struct buffer *from, uint64_t unused)
{
	return file_write(file, from);
}

/* Collects a piece in the kernel's memory: `to` is an address. */
static int collect(struct file *unused, struct buffer *from, uint64_t to)
{
	return buffer_take(from, (void *)(uintptr_t)to, from->length);
}

/* A write to a stream is one write, in however many pieces it comes: what a pipe takes without
 * tearing it apart (PIPE_BUF), and how it fills pages, follows from the sum. */
static int write_together(struct file *file, uint32_t vectors, uint32_t count, uint32_t total)
{
	unsigned order = total <= PAGE_SIZE ? 0 : AT_ONCE;
	void *bytes = page_alloc(order);
	struct buffer buffer = buffer_of_kernel(bytes, total);

	if (!bytes)
		return each_piece(file, vectors, count, 0, 0, write_here);
	int moved = each_piece(file, vectors, count, (uintptr_t)bytes, 0, collect);

	moved = moved == (int)total ? write_here(file, &buffer, 0) : -EFAULT;
	page_free(bytes, order);
	return moved;
}

/* Is an offset, or the end of a transfer there, beyond all that files can have? */
static inline bool is_beyond(uint64_t offset, uint32_t length)
{
	return (int64_t)(offset | (offset + length)) < 0;
}

/*
 * A transfer for a whole list: at an offset; or where the file's own is, and that moves.
 *
 * With O_DIRECT all pieces are one transfer, as in Linux: if one is not aligned, none is. Then its
 * first byte is moved alone: the file refuses that, or, where a hole is filled through the cache,
 * it takes the rest so, too.
 */
static int each_vector(struct file *file, uint32_t vectors, uint32_t count, uint64_t offset,
		       int (*transfer)(struct file *, struct buffer *, uint64_t))
{
	struct linux_vector first = { 0, 0 };
	uint32_t total;
	int moved = file ? vectors_error(vectors, count, &total) : -EBADF;

	if (moved || total == 0)
		return moved;
	if (is_beyond(offset, total))
		return -EINVAL;
	if (message_ops && file->ops == message_ops->ops)
		return message_ops->move(file, vectors, count, transfer == write_here);
	if (transfer == write_here && file->ops->is_stream && total <= PAGE_SIZE << AT_ONCE)
		return write_together(file, vectors, count, total);
	if (!(file->flags & O_DIRECT) || file->ops->is_stream ||
	    !is_unaligned(vectors, count, &first))
		return each_piece(file, vectors, count, offset, 0, transfer);
	struct buffer buffer = buffer_of_user(first.base, 1);

	moved = transfer(file, &buffer, offset);
	if (moved <= 0)
		return moved;
	file->flags &= ~O_DIRECT;
	moved = each_piece(file, vectors, count, offset, moved, transfer);
	file->flags |= O_DIRECT;
	return moved;
}

/* Waits for the first bytes only: after that, a pipe or a terminal gives what is there. */
static int read_here(struct file *file, struct buffer *to, uint64_t done)
{
	if (done > 0 && file->ops->poll && !(file->ops->poll(file, NULL) & POLLIN))
		return 0;
	return file_read(file, to);
}

OFFSET_CALL(sys_readv, each_vector(file_to_read(file), frame->ecx, frame->edx, 0, read_here))
OFFSET_CALL(sys_writev,
	    end_write(each_vector(file_to_write(file), frame->ecx, frame->edx, 0, write_here)))

/* O_APPEND overrides the caller's offset. */
static int write_at(struct file *file, struct buffer *from, uint64_t offset)
{
	if (!(file->flags & O_APPEND))
		return file_write_at(file, from, offset);
	struct claim *lock = file_offset_lock(file);
	int moved = file_write_at(file, from, file_size(file));

	claim_give(lock);
	return moved;
}

/* What is wrong with a transfer at an offset of the caller's; 0: nothing. Of a stream it is not
 * said first that the file is not open for this. */
static int offset_error(const struct file *file, bool is_allowed, const struct trap_frame *frame)
{
	if ((int32_t)frame->edi < 0)
		return -EINVAL;
	if (file && !(file->flags & O_PATH) && file->ops->is_stream)
		return -ESPIPE;
	return is_allowed ? 0 : -EBADF;
}

static int each_vector_at(struct file *file, bool is_allowed, const struct trap_frame *frame,
			  int (*transfer)(struct file *, struct buffer *, uint64_t))
{
	int error = offset_error(file, is_allowed, frame);

	if (error)
		return error;
	return each_vector(file, frame->ecx, frame->edx, wide(frame->esi, frame->edi), transfer);
}

FILE_CALL(sys_preadv, each_vector_at(file, file_to_read(file), frame, file_read_at))
FILE_CALL(sys_pwritev, each_vector_at(file, file_to_write(file), frame, write_at))

static inline __attribute__((always_inline)) int
transfer_at(struct file *file, bool is_allowed, const struct trap_frame *frame,
	    int (*transfer)(struct file *, struct buffer *, uint64_t))
{
	uint32_t length = frame->edx < TRANSFER_MAX ? frame->edx : TRANSFER_MAX;
	struct buffer buffer = buffer_of_user(frame->ecx, length);

	if (!is_allowed || file->ops->is_stream ||
	    (frame->edi >= INT32_MAX && is_beyond(wide(frame->esi, frame->edi), frame->edx)))
		return offset_error(file, is_allowed, frame) ?: -EINVAL;
	if (!user_range_ok(frame->ecx, frame->edx))
		return -EFAULT;
	return transfer(file, &buffer, wide(frame->esi, frame->edi));
}

/* file_read_at without its call: reading what is in memory should cost little else. */
static inline int read_at(struct file *file, struct buffer *to, uint64_t offset)
{
	return file->ops->read ? file->ops->read(file, to, offset) : -EINVAL;
}

FILE_CALL(sys_pread64, transfer_at(file, file_to_read(file), frame, read_at))
FILE_CALL(sys_pwrite64, transfer_at(file, file_to_write(file), frame, write_at))

/* ---- offsets and sizes ---- */

/* All of a file is data, as a file system may say: the first hole is at its end. */
int file_seek_more(struct file *file, int64_t distance, uint32_t whence, int64_t *result)
{
	file = file_opened(file);
	bool is_device = file && !file->ops->is_stream && inode_is(file->inode, S_IFCHR);

	if (file && inode_is(file->inode, S_IFDIR) && whence == SEEK_END && !file->ops->size &&
	    file->inode->ops->create)
		return -EINVAL;		       /* names in memory have no order with an end */
	if (is_device && whence <= SEEK_END) { /* there is no place in it */
		*result = 0;
		return 0;
	}
	if (file && !file->ops->is_stream && (whence == SEEK_DATA || whence == SEEK_HOLE)) {
		if ((uint64_t)distance >= file_size(file))
			return -ENXIO;
		if (inode_is(file->inode, S_IFREG) && file->inode->ops->seek) {
			int error = file->inode->ops->seek(file->inode, whence == SEEK_HOLE,
							   (uint64_t *)&distance);

			return error ? error : file_seek(file, distance, SEEK_SET, result);
		}
		distance = whence == SEEK_HOLE ? 0 : distance;
		whence = whence == SEEK_HOLE ? SEEK_END : SEEK_SET;
	}
	return file_seek(file, distance, whence, result);
}

static int seek(struct file *file, const struct trap_frame *frame)
{
	int64_t offset;
	int error = file_seek_more(file, (int32_t)frame->ecx, frame->edx, &offset);

	if (error)
		return error;
	return offset > INT32_MAX ? -EOVERFLOW : (int32_t)offset;
}

OFFSET_CALL(sys_lseek, seek(file, frame))

static int truncate_file(struct file *file, uint64_t size)
{
	if (!file)
		return -EBADF;
	if (!file_writable(file) || (int64_t)size < 0)
		return -EINVAL;
	return vfs_truncate(file->inode, size);
}

FILE_CALL(sys_ftruncate, truncate_file(file_opened(file), (int32_t)frame->ecx))
FILE_CALL(sys_ftruncate64, truncate_file(file_opened(file), wide(frame->ecx, frame->edx)))

/* It cannot fail: who wants to know calls fsync. */
static int sys_sync(struct trap_frame *frame)
{
	vfs_sync();
	return 0;
}

/* What is in memory has nothing to write back; but only a file system's files could. */
static int sync_file(struct file *file, bool data_only)
{
	if (!file)
		return -EBADF;
	if (file->ops->sync)
		return file->ops->sync(file, data_only);
	return inode_is(file->inode, S_IFREG) || inode_is(file->inode, S_IFDIR) ? 0 : -EINVAL;
}

FILE_CALL(sys_fsync, sync_file(file_opened(file), false))
FILE_CALL(sys_fdatasync, sync_file(file_opened(file), true))

static int advise(struct file *file, uint64_t offset, int64_t length, uint32_t advice)
{
	if (!file)
		return -EBADF;
	if (inode_is(file->inode, S_IFIFO))
		return -ESPIPE;
	if (length < 0 || advice > ADVICE_LAST)
		return -EINVAL;
	return file->ops->advise ? file->ops->advise(file, offset, length, advice) : 0;
}

FILE_CALL(sys_fadvise64,
	  advise(file_opened(file), wide(frame->ecx, frame->edx), frame->esi, frame->edi))
FILE_CALL(sys_fadvise64_64, advise(file_opened(file), wide(frame->ecx, frame->edx),
				   wide(frame->esi, frame->edi), frame->ebp))

/* Only of what has pages: a file or a block device, open to be read. */
static int read_ahead(struct file *file, uint64_t offset, uint32_t length)
{
	if (!file || !file_readable(file))
		return -EBADF;
	if (!inode_is(file->inode, S_IFREG) && !inode_is(file->inode, S_IFBLK))
		return -EINVAL;
	return advise(file, offset, length, ADVICE_READ_AHEAD);
}

FILE_CALL(sys_readahead, read_ahead(file_opened(file), wide(frame->ecx, frame->edx), frame->esi))

/* ---- ioctl ---- */

static int set_flag(struct file *file, uint32_t flag, uint32_t address)
{
	uint32_t wanted;

	if (copy_from_user(&wanted, address, sizeof(wanted)))
		return -EFAULT;
	if (wanted && flag == O_ASYNC && !file->ops->is_stream)
		return -ENOTTY;
	file->flags = wanted ? file->flags | flag : file->flags & ~flag;
	return 0;
}

int ioctl_of_all(struct file *file, const struct trap_frame *frame)
{
	uint32_t left;

	if (file->flags & O_PATH)
		return -EBADF;
	switch (frame->ecx) {
	case FIONBIO:
		return set_flag(file, O_NONBLOCK, frame->edx);
	case FIOASYNC:
		return set_flag(file, O_ASYNC, frame->edx);
	case FIONREAD: /* of other files than these it is the file's own command */
		if (!inode_is(file->inode, S_IFREG))
			break;
		left = file_size(file) - file->offset;
		return give(frame->edx, &left, sizeof(left));
	case FIOCLEX:
	case FIONCLEX:
		files_set_close_on_exec(current->process->files, frame->ebx, frame->ecx == FIOCLEX);
		return 0;
	}
	return file_control(file, frame->ecx, frame->edx);
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 19, "lseek", "Fdd", sys_lseek },
	{ 36, "sync", "", sys_sync },
	{ 93, "ftruncate", "fd", sys_ftruncate },
	{ 118, "fsync", "f", sys_fsync },
	{ 145, "readv", "Fpd", sys_readv },
	{ 146, "writev", "Fpd", sys_writev },
	{ 148, "fdatasync", "f", sys_fdatasync },
	{ 180, "pread64", "fpdxx", sys_pread64 },
	{ 181, "pwrite64", "fpdxx", sys_pwrite64 },
	{ 194, "ftruncate64", "fxx", sys_ftruncate64 },
	{ 225, "readahead", "fxxd", sys_readahead },
	{ 250, "fadvise64", "fxxdd", sys_fadvise64 },
	{ 272, "fadvise64_64", "fxxxxd", sys_fadvise64_64 },
	{ 333, "preadv", "fpdxx", sys_preadv },
	{ 334, "pwritev", "fpdxx", sys_pwritev },
};
