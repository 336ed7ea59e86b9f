/* System calls of locks: fcntl's, of ranges of bytes, and flock's, of whole files. */
#include "kernel/linux/files/locks.h"

#include "fs/vfs/inode.h"
#include "fs/vfs/locks.h"
#include "kernel/abi/unistd.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/files/calls.h"
#include "kernel/process/process.h"
#include "kernel/syscall/syscall.h"
#include "mm/user_copy.h"

static bool is_narrow(uint32_t command)
{
	return command <= F_SETLKW;
}

static int fetch(const struct trap_frame *frame, struct linux_lock64 *lock)
{
	struct linux_lock old;
	bool narrow = is_narrow(frame->ecx);

	if (copy_from_user(narrow ? (void *)&old : lock, frame->edx,
			   narrow ? sizeof(old) : sizeof(*lock)) != 0)
		return -EFAULT;
	if (narrow)
		*lock =
		    (struct linux_lock64){ old.type, old.whence, old.first, old.length, old.pid };
	return 0;
}

static int tell(const struct trap_frame *frame, const struct linux_lock64 *lock)
{
	const struct linux_lock old = { lock->type, lock->whence, lock->first, lock->length,
					lock->pid };

	return is_narrow(frame->ecx) ? give(frame->edx, &old, sizeof(old))
				     : give(frame->edx, lock, sizeof(*lock));
}

/* Which bytes the program means. -EINVAL, or -EOVERFLOW. */
static int set_range(const struct file *file, const struct linux_lock64 *from,
		     struct file_lock *lock)
{
	const int64_t bases[] = { 0, file->offset, file_size(file) };
	int64_t first, last;

	if ((uint16_t)from->whence > SEEK_END)
		return -EINVAL;
	if (__builtin_add_overflow(bases[from->whence], from->first, &first) ||
	    __builtin_add_overflow(first, from->length - (from->length > 0), &last))
		return -EOVERFLOW;
	if (from->length < 0) {
		int64_t after = first;

		first = last;
		last = after - 1;
	}
	lock->first = first;
	lock->last = from->length ? (uint64_t)last : LOCK_LAST;
	return first < 0 ? -EINVAL : 0;
}

/* Tells of the lock that would be in the way, or that there is none. */
static int show_conflict(const struct file *file, const struct trap_frame *frame,
			 const struct file_lock *lock, struct linux_lock64 *answer)
{
	const struct file_lock *found = lock_conflict(file->inode, lock);

	if (lock->kind == LOCK_NONE)
		return -EINVAL;
	answer->type = F_UNLCK;
	if (found)
		*answer = (struct linux_lock64){
			.type = found->kind == LOCK_SHARED ? F_RDLCK : F_WRLCK,
			.first = found->first,
			.length = found->last == LOCK_LAST ? 0 : found->last - found->first + 1,
			.pid = found->pid,
		};
	return tell(frame, answer);
}

/* While it slept, another task with the same descriptors may have closed this one. What an open
 * file owns goes with that file. */
static int set(struct file *file, uint32_t descriptor, const struct file_lock *lock, bool waits)
{
	int result = lock_set(file->inode, lock, waits);

	if (result == 0 && lock->owner != file &&
	    files_get(current->process->files, descriptor) != file) {
		locks_drop(file->inode, lock->owner);
		result = -EBADF;
	}
	return result;
}

static bool may_lock(const struct file *file, enum lock_kind kind)
{
	return kind == LOCK_NONE ||
	       (kind == LOCK_SHARED ? file_readable(file) : file_writable(file));
}

int lock_call(struct file *file, const struct trap_frame *frame)
{
	static const enum lock_kind kinds[] = { LOCK_SHARED, LOCK_EXCLUSIVE, LOCK_NONE };
	bool of_file = frame->ecx >= F_OFD_GETLK, waits;
	struct file_lock lock = { .owner = of_file ? (void *)file : current->process->files,
				  .pid = of_file ? -1 : current->process->leader->task->pid };
	struct linux_lock64 from;
	int error = fetch(frame, &from);

	if (error)
		return error;
	if ((uint16_t)from.type > F_UNLCK || (of_file && from.pid != 0))
		return -EINVAL;
	lock.kind = kinds[from.type];
	error = set_range(file, &from, &lock);
	if (error)
		return error;
	switch (frame->ecx) {
	case F_GETLK:
	case F_GETLK64:
	case F_OFD_GETLK:
		return show_conflict(file, frame, &lock, &from);
	}
	waits = frame->ecx == F_SETLKW || frame->ecx == F_SETLKW64 || frame->ecx == F_OFD_SETLKW;
	return may_lock(file, lock.kind) ? set(file, frame->ebx, &lock, waits) : -EBADF;
}

static int lock_whole(struct file *file, const struct trap_frame *frame)
{
	uint32_t operation = frame->ecx & ~LOCK_NB;
	struct file_lock lock = { .owner = file, .is_whole = true, .last = LOCK_LAST };

	if (operation != LOCK_SH && operation != LOCK_EX && operation != LOCK_UN)
		return -EINVAL;
	if (!file)
		return -EBADF;
	lock.kind = operation == LOCK_UN   ? LOCK_NONE
		    : operation == LOCK_SH ? LOCK_SHARED
					   : LOCK_EXCLUSIVE;
	return set(file, frame->ebx, &lock, !(frame->ecx & LOCK_NB));
}

FILE_CALL(sys_flock, lock_whole(file_opened(file), frame))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 143, "flock", "fx", sys_flock },
};
