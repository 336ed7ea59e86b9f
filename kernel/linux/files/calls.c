/*
 * Calls for open files that only Linux's programs make: vectors, the caller's offsets, sizes, and
 * the ioctl commands that all files have.
 *
 * A transfer is one of four, by where its bytes are and where they go:
 *
 *			at the file's offset	at the caller's
 *	one buffer	read (lesson 3)		pread64		transfer_at
 *	a vector	readv			preadv		move_vectors
 *
 * Both end in an operation of struct file_ops, which touches user memory through a struct buffer,
 * and may sleep. readv(2), pread(2), lseek(2), ftruncate(2), fsync(2), posix_fadvise(2), ioctl(2).
 */
#include "fs/vfs/mounting.h"
#include "fs/vfs/vfs.h"
#include "kernel/abi/poll.h"
#include "kernel/abi/unistd.h"
#include "kernel/linux/files/calls.h"

#define FIONCLEX 0x5450
#define FIOCLEX	 0x5451

#define DIRECT_UNIT	  512u /* O_DIRECT: addresses and lengths are multiples of it */
#define ADVICE_READ_AHEAD 3u
#define ADVICE_LAST	  5u /* of posix_fadvise: to be used once */
#define AT_ONCE		  4u /* a stream gets up to 2^4 pages of vectors in one piece: a pipe's */
#define VECTOR_ORDER	  1u /* pages for VECTORS_MAX of them */

/* ---- files without a name ---- */

/* Without a file the object goes back to the pool here. From then on it is the file's, whose
 * release operation gives it back. */
struct file *file_of_pool(struct anonymous *kind, const struct file_ops *ops, struct pool *pool,
			  uint32_t flags)
{
	void *private = pool_alloc(pool);
	struct file *file = private ? anonymous_file(kind, ops, private, flags) : NULL;

	if (private && !file)
		pool_free(pool, private);
	return file;
}

int descriptor_of_pool(struct anonymous *kind, const struct file_ops *ops, struct pool *pool,
		       const void *initial, uint32_t flags)
{
	struct file *file = file_of_pool(kind, ops, pool, O_RDWR | (flags & O_NONBLOCK));

	if (!file)
		return -ENOMEM;
	memcpy(file->private, initial, pool->size);
	return descriptor_add(file, flags);
}

/* ---- vectors ---- */

/* What moves some bytes between a file and memory, at an offset that it may ignore. */
typedef int transfer_call(struct file *file, struct buffer *buffer, uint64_t offset);

/* A short list is on the stack, and a list that was never fetched is none: both need nothing. */
void vectors_release(struct vectors *vectors)
{
	if (vectors->list && vectors->list != vectors->few)
		page_free(vectors->list, VECTOR_ORDER);
}

/* The list is copied first and checked in the copy: the program may change its own meanwhile (time
 * of check to time of use). The order of errors is that of Linux's import_iovec (lib/iov_iter.c).
 */
int vectors_from_user(struct vectors *vectors, uint32_t from, uint32_t count)
{
	if (count > VECTORS_MAX)
		return -EINVAL;
	vectors->list = count <= FEW_VECTORS ? vectors->few : page_alloc(VECTOR_ORDER);
	if (!vectors->list)
		return -ENOMEM;
	if (copy_from_user(vectors->list, from, count * sizeof(*vectors->list)))
		return -EFAULT;
	vectors->count = count;
	vectors->total = 0;
	for (struct linux_vector *each = vectors->list; each < vectors->list + count; each++) {
		if ((int32_t)each->length < 0)
			return -EINVAL;
		if (!user_range_ok(each->base, each->length))
			return -EFAULT;
		if (each->length > TRANSFER_MAX - vectors->total)
			each->length = TRANSFER_MAX - vectors->total;
		vectors->total += each->length;
	}
	return 0;
}

/* Runs a transfer for each piece, until one moves less than it could; `done` bytes before the first
 * were moved already. Returns how many bytes in all, or the error if there are none. */
static int each_piece(struct file *file, const struct vectors *vectors, uint64_t offset,
		      uint32_t done, transfer_call *transfer)
{
	for (uint32_t i = 0; i < vectors->count; i++) {
		uint32_t length = vectors->list[i].length;
		struct buffer buffer = buffer_of_user(vectors->list[i].base, length);
		int moved = length ? transfer(file, &buffer, offset + done) : 0;

		if (moved < 0)
			return done ? (int32_t)done : moved;
		done += moved;
		if ((uint32_t)moved < length)
			break;
		share_processor();
	}
	return done;
}

/* The first piece that is not empty, if some piece is not as O_DIRECT wants it; or NULL. */
static struct linux_vector *find_unaligned(const struct vectors *vectors)
{
	struct linux_vector *first = NULL;
	uint32_t bits = 0;

	for (uint32_t i = vectors->count; i-- > 0;) {
		if (vectors->list[i].length == 0)
			continue;
		first = &vectors->list[i];
		bits |= first->base | first->length;
	}
	return bits % DIRECT_UNIT ? first : NULL;
}

/* A transfer_call at the file's own offset, which file_write moves; an argument is not needed. */
static int write_here(struct file *file, struct buffer *from, uint64_t unused)
{
	return file_write(file, from);
}

/* Collects a piece in the kernel's memory: `to` is an address. */
static int collect_piece(struct file *unused, struct buffer *from, uint64_t to)
{
	return buffer_take(from, (void *)(uintptr_t)to, from->length);
}

/* A write to a stream is one write, in however many pieces it comes: what a pipe takes without
 * tearing it apart (PIPE_BUF), and how it fills pages, follows from the sum. */
static int write_together(struct file *file, const struct vectors *vectors)
{
	unsigned order = vectors->total <= PAGE_SIZE ? 0 : AT_ONCE;
	void *bytes = page_alloc(order);
	struct buffer buffer = buffer_of_kernel(bytes, vectors->total);

	if (!bytes)
		return each_piece(file, vectors, 0, 0, write_here);
	int moved = each_piece(file, vectors, (uintptr_t)bytes, 0, collect_piece);

	moved = moved == (int)vectors->total ? write_here(file, &buffer, 0) : -EFAULT;
	page_free(bytes, order);
	return moved;
}

/* With O_DIRECT all pieces are one transfer, as in Linux: if one is not aligned, none is. Then the
 * first byte is moved alone: the file refuses that, or, where a hole is filled through the cache,
 * it takes the rest so, too. */
static int move_unaligned(struct file *file, const struct vectors *vectors,
			  struct linux_vector *first, uint64_t offset, transfer_call *transfer)
{
	struct buffer buffer = buffer_of_user(first->base, 1);
	int moved = transfer(file, &buffer, offset);

	if (moved <= 0)
		return moved;
	first->base++;
	first->length--;
	file->flags &= ~O_DIRECT;
	moved = each_piece(file, vectors, offset, moved, transfer);
	file->flags |= O_DIRECT;
	return moved;
}

/* Is an offset, or the end of a transfer there, beyond all that files can have? */
static inline bool is_beyond_files(uint64_t offset, uint32_t length)
{
	return (int64_t)(offset | (offset + length)) < 0;
}

/* A transfer for a whole list: at an offset; or where the file's own is, and that moves. */
static int move_vectors(struct file *file, const struct trap_frame *frame, uint64_t offset,
			transfer_call *transfer)
{
	struct vectors vectors CLEANUP(vectors_release) = { .list = NULL };
	int error = file ? vectors_from_user(&vectors, frame->ecx, frame->edx) : -EBADF;

	if (error || vectors.total == 0)
		return error;
	if (is_beyond_files(offset, vectors.total))
		return -EINVAL;
	if (socket_move_vectors && file->ops == &socket_ops)
		return socket_move_vectors(file, &vectors, transfer == write_here);
	if (transfer == write_here && file->ops->is_stream && vectors.total <= PAGE_SIZE << AT_ONCE)
		return write_together(file, &vectors);
	bool is_direct = file->flags & O_DIRECT && !file->ops->is_stream;
	struct linux_vector *first = is_direct ? find_unaligned(&vectors) : NULL;

	return first ? move_unaligned(file, &vectors, first, offset, transfer)
		     : each_piece(file, &vectors, offset, 0, transfer);
}

/* Waits for the first bytes only: after that, a pipe or a terminal gives what is there. */
static int read_here(struct file *file, struct buffer *to, uint64_t done)
{
	if (done > 0 && file->ops->poll && !(file->ops->poll(file, NULL) & POLLIN))
		return 0;
	return file_read(file, to);
}

/* The lock of the offset is held for all pieces, so those of two tasks do not mix: POSIX.1, "Thread
 * Interactions with Regular File Operations". */
SYSCALL_OFFSET(145, sys_readv, "Fpd", move_vectors(file_to_read(file), frame, 0, read_here))
SYSCALL_OFFSET(146, sys_writev, "Fpd",
	       end_write(move_vectors(file_to_write(file), frame, 0, write_here)))

/* ---- the caller's offset ---- */

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

/* preadv and pwritev. The caller's offset is in two registers, as Linux has it for both sizes of
 * registers (pos_from_hilo); it is looked at before the list is. */
static int move_vectors_at(struct file *file, bool is_allowed, const struct trap_frame *frame,
			   transfer_call *transfer)
{
	return offset_error(file, is_allowed, frame)
		   ?: move_vectors(file, frame, wide(frame->esi, frame->edi), transfer);
}

SYSCALL_FILE(333, sys_preadv, "fpdxx",
	     move_vectors_at(file, file_to_read(file), frame, file_read_at))
SYSCALL_FILE(334, sys_pwritev, "fpdxx", move_vectors_at(file, file_to_write(file), frame, write_at))

/* Inlined, so that the file's operation is called directly: reading what is in memory should cost
 * little else. */
static inline __attribute__((always_inline)) int transfer_at(struct file *file, bool is_allowed,
							     const struct trap_frame *frame,
							     transfer_call *transfer)
{
	uint32_t length = frame->edx < TRANSFER_MAX ? frame->edx : TRANSFER_MAX;
	struct buffer buffer = buffer_of_user(frame->ecx, length);

	if (!is_allowed || file->ops->is_stream ||
	    (frame->edi >= INT32_MAX && is_beyond_files(wide(frame->esi, frame->edi), frame->edx)))
		return offset_error(file, is_allowed, frame) ?: -EINVAL;
	if (!user_range_ok(frame->ecx, frame->edx))
		return -EFAULT;
	return transfer(file, &buffer, wide(frame->esi, frame->edi));
}

/* pread(2), pwrite(2): these leave the file's own offset alone, so they need no lock of it. */
SYSCALL_FILE(180, sys_pread64, "fpdxx", transfer_at(file, file_to_read(file), frame, file_read_at))
SYSCALL_FILE(181, sys_pwrite64, "fpdxx", transfer_at(file, file_to_write(file), frame, write_at))

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

/* An offset that the result cannot tell is set all the same, as on Linux: lseek(2). */
static int seek_narrow(struct file *file, int32_t distance, uint32_t whence)
{
	int64_t offset;
	int error = file_seek_more(file, distance, whence, &offset);

	return error ?: offset > INT32_MAX ? -EOVERFLOW : (int32_t)offset;
}

SYSCALL_OFFSET(19, sys_lseek, "Fdd", seek_narrow(file, frame->ecx, frame->edx))

/* -EINVAL also for a file that is not open to be written: ftruncate(2). */
static int truncate_file(struct file *file, int64_t size)
{
	return file_writable(file) && size >= 0 ? vfs_truncate(file->inode, size) : -EINVAL;
}

SYSCALL_OPEN(93, sys_ftruncate, "fd", truncate_file(file, (int32_t)frame->ecx))
SYSCALL_OPEN(194, sys_ftruncate64, "fxx", truncate_file(file, wide(frame->ecx, frame->edx)))

/* sync(2) has no result that says what failed: who wants to know calls fsync. Unlike what POSIX
 * asks at least, it returns after everything is written. */
SYSCALL(36, sys_sync, "", (vfs_sync(), 0))

/* What is in memory has nothing to write back; but only a file system's files could. */
static int sync_file(struct file *file, bool data_only)
{
	if (file->ops->sync)
		return file->ops->sync(file, data_only);
	return inode_is(file->inode, S_IFREG) || inode_is(file->inode, S_IFDIR) ? 0 : -EINVAL;
}

SYSCALL_OPEN(118, sys_fsync, "f", sync_file(file, false))
SYSCALL_OPEN(148, sys_fdatasync, "f", sync_file(file, true))

/* Advice changes no result, only how much is read ahead or kept. -ESPIPE, -EINVAL. */
static int advise_file(struct file *file, uint64_t offset, int64_t length, uint32_t advice)
{
	if (inode_is(file->inode, S_IFIFO))
		return -ESPIPE;
	if (length < 0 || advice > ADVICE_LAST)
		return -EINVAL;
	return file->ops->advise ? file->ops->advise(file, offset, length, advice) : 0;
}

SYSCALL_OPEN(250, sys_fadvise64, "fxxdd",
	     advise_file(file, wide(frame->ecx, frame->edx), frame->esi, frame->edi))
SYSCALL_OPEN(272, sys_fadvise64_64, "fxxxxd",
	     advise_file(file, wide(frame->ecx, frame->edx), wide(frame->esi, frame->edi),
			 frame->ebp))

/* readahead(2): only of what has pages, a file or a block device, open to be read. */
static int read_file_ahead(struct file *file, uint64_t offset, uint32_t length)
{
	if (!file_readable(file))
		return -EBADF;
	if (!inode_is(file->inode, S_IFREG) && !inode_is(file->inode, S_IFBLK))
		return -EINVAL;
	return advise_file(file, offset, length, ADVICE_READ_AHEAD);
}

SYSCALL_OPEN(225, sys_readahead, "fxxd",
	     read_file_ahead(file, wide(frame->ecx, frame->edx), frame->esi))

/* ---- ioctl ---- */

/* FIONBIO and FIOASYNC: a flag of fcntl's, set by another call. Nothing signals a file's owner for
 * it (kernel/linux/MISSING.md); it is told again. */
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

/* The commands that every file has; others are its own operation's. */
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
