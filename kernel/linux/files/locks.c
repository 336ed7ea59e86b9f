/*
 * System calls of locks: fcntl's, of ranges of bytes, and flock's, of whole files.
 *
 *	F_SETLK, F_SETLK64	owned by the program: any of its tasks may change it; it goes when
 *				the program closes any descriptor of the file
 *	F_OFD_SETLK, flock	owned by the open file: goes with the last reference to it
 *
 * What is here takes the arguments apart; fs/vfs/locks.h keeps the locks of an inode, finds
 * conflicts, and waits. fcntl(2), flock(2), POSIX.1 fcntl(). F_SETLKW and flock may sleep.
 */
#include "fs/vfs/locks.h"
#include "kernel/abi/unistd.h"
#include "kernel/linux/files/calls.h"

/* fcntl's commands come in three groups of three, in this order. */
enum lock_action { LOCK_GET, LOCK_SET, LOCK_SET_AND_WAIT };

/* The first group has 32 bits for offsets; the two that came later have 64. */
static bool is_narrow(uint32_t command)
{
	return command <= F_SETLKW;
}

/* Fetch and give the program's structure, in either layout. Return 0 or -EFAULT. */
static int lock_from_user(const struct trap_frame *frame, struct linux_lock64 *lock)
{
	struct linux_lock old;

	if (!is_narrow(frame->ecx))
		return copy_from_user(lock, frame->edx, sizeof(*lock)) ? -EFAULT : 0;
	if (copy_from_user(&old, frame->edx, sizeof(old)))
		return -EFAULT;
	*lock = (struct linux_lock64){ old.type, old.whence, old.first, old.length, old.pid };
	return 0;
}

static int lock_to_user(const struct trap_frame *frame, const struct linux_lock64 *lock)
{
	const struct linux_lock old = { lock->type, lock->whence, lock->first, lock->length,
					lock->pid };

	return is_narrow(frame->ecx) ? give(frame->edx, &old, sizeof(old))
				     : give(frame->edx, lock, sizeof(*lock));
}

/* Which bytes the program means: a negative length is of those before the offset, 0 means up to
 * the end, wherever that comes to be. Returns 0, -EINVAL or -EOVERFLOW. */
static int set_lock_range(const struct file *file, const struct linux_lock64 *from,
			  struct file_lock *lock)
{
	const int64_t bases[] = { 0, file->offset, file_size(file) };
	int64_t first, last;

	if ((uint16_t)from->whence > SEEK_END)
		return -EINVAL;
	if (__builtin_add_overflow(bases[from->whence], from->first, &first) ||
	    __builtin_add_overflow(first, from->length - (from->length > 0), &last))
		return -EOVERFLOW;
	lock->first = from->length < 0 ? last : first;
	lock->last = from->length < 0 ? first - 1 : from->length ? last : (int64_t)LOCK_LAST;
	return (int64_t)lock->first < 0 ? -EINVAL : 0;
}

/* Tells of the lock that would be in the way, or that there is none. */
static int give_conflict(const struct file *file, const struct trap_frame *frame,
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
	return lock_to_user(frame, answer);
}

/* While it slept, another task with the same descriptors may have closed this one. What an open
 * file owns goes with that file. */
static int set_lock(struct file *file, uint32_t descriptor, const struct file_lock *lock,
		    bool waits)
{
	int result = lock_set(file->inode, lock, waits);

	if (result == 0 && lock->owner != file &&
	    files_get(current->process->files, descriptor) != file) {
		locks_drop(file->inode, lock->owner);
		result = -EBADF;
	}
	return result;
}

/* A lock to read needs a file that can be read, one to write one that can be written. */
static bool may_lock(const struct file *file, enum lock_kind kind)
{
	return kind == LOCK_NONE ||
	       (kind == LOCK_SHARED ? file_readable(file) : file_writable(file));
}

/* Linux's order of errors: the memory, the kind, the range, the access. May sleep (F_SETLKW):
 * -ERESTART for a signal, -EDEADLK where waiting would never end. */
int lock_call(struct file *file, const struct trap_frame *frame)
{
	static const enum lock_kind kinds[] = { LOCK_SHARED, LOCK_EXCLUSIVE, LOCK_NONE };
	bool of_file = frame->ecx >= F_OFD_GETLK;
	enum lock_action action = frame->ecx - (of_file			? F_OFD_GETLK
						: is_narrow(frame->ecx) ? F_GETLK
									: F_GETLK64);
	struct file_lock lock = { .owner = of_file ? (void *)file : current->process->files,
				  .pid = of_file ? -1 : calling_pid() };
	struct linux_lock64 from;
	int error = lock_from_user(frame, &from);

	if (error)
		return error;
	if ((uint16_t)from.type > F_UNLCK || (of_file && from.pid != 0))
		return -EINVAL;
	lock.kind = kinds[from.type];
	error = set_lock_range(file, &from, &lock);
	if (error)
		return error;
	if (action == LOCK_GET)
		return give_conflict(file, frame, &lock, &from);
	return may_lock(file, lock.kind)
		   ? set_lock(file, frame->ebx, &lock, action == LOCK_SET_AND_WAIT)
		   : -EBADF;
}

/* flock(2): a bad operation is said before a bad descriptor. */
static int lock_whole_file(struct file *file, const struct trap_frame *frame)
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
	return set_lock(file, frame->ebx, &lock, !(frame->ecx & LOCK_NB));
}

SYSCALL_FILE(143, sys_flock, "fx", lock_whole_file(file_opened(file), frame))
