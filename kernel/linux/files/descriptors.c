/* Calls for descriptors that only Linux's programs make, and the commands of fcntl. */
#include "fs/vfs/inode.h"
#include "kernel/abi/file.h"
#include "fs/pipe.h"
#include "kernel/lib/errno.h"
#include "kernel/linux/files/locks.h"
#include "kernel/process/descriptor_calls.h"
#include "kernel/process/family.h"
#include "kernel/process/file_calls.h"
#include "kernel/process/held_call.h"

#define SETTABLE	    (O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME)
#define CLOSE_RANGE_ON_EXEC 4u

/* Closes them, or has exec close them. */
static int sys_close_range(struct trap_frame *frame)
{
	struct files *files = current->process->files;
	uint32_t end = frame->ecx < files->count ? frame->ecx + 1 : files->count;

	if (frame->ebx > frame->ecx || frame->edx & ~CLOSE_RANGE_ON_EXEC)
		return -EINVAL;
	for (uint32_t i = frame->ebx; i < end; i++)
		if (frame->edx)
			files_set_close_on_exec(files, i, true);
		else
			files_close(files, i);
	return 0;
}

static int duplicate_to(struct file *file, const struct trap_frame *frame)
{
	if (frame->ebx == frame->ecx || frame->edx & ~O_CLOEXEC)
		return -EINVAL;
	return descriptor_duplicate_to(file, frame->ecx, frame->edx);
}

FILE_CALL(sys_dup3, duplicate_to(file, frame))

static int sys_pipe2(struct trap_frame *frame)
{
	if (frame->ecx & ~(O_CLOEXEC | O_NONBLOCK)) /* O_DIRECT: one that keeps writes apart */
		return -EINVAL;
	return descriptors_of_pipe(frame->ebx, frame->ecx);
}

/* The call that C libraries make in place of F_GETOWN, whose result may look like an error. */
static int give_owner(int32_t owner, uint32_t address)
{
	const int32_t answer[] = { owner < 0 ? F_OWNER_PGRP : F_OWNER_PID,
				   owner < 0 ? -owner : owner };

	return give(address, answer, sizeof(answer));
}

/* A process, or a group: its number, negative. 0: nobody. */
static int set_owner(struct file *file, int32_t owner)
{
	bool is_there = owner == 0 || (owner > 0 && process_find(owner));

	if (owner == INT32_MIN) /* the negative of no group */
		return -EINVAL;
	for (struct process *each = process_next(NULL); each && !is_there;
	     each = process_next(each))
		is_there = each->pgrp == -owner;
	if (!is_there)
		return -ESRCH;
	file->owner = owner;
	return 0;
}

static int set_flags(struct file *file, uint32_t flags)
{
	if ((file->flags ^ flags) & O_APPEND && file->inode && file->inode->is_append_only)
		return -EPERM;
	if (flags & O_DIRECT && !inode_is(file->inode, S_IFREG) && !inode_is(file->inode, S_IFBLK))
		return -EINVAL;
	uint32_t settable = SETTABLE | (file->ops->is_stream ? O_ASYNC : 0);

	file->flags = (file->flags & ~settable) | (flags & settable);
	return 0;
}

/* The access mode of a file that is only a place is not one that F_GETFL shows. */
static int flags_of(const struct file *file)
{
	return file->flags & O_PATH ? file->flags & ~O_ACCMODE : file->flags;
}

/* A pipe has one size. A request for less gets more, which fcntl(2) allows. */
static int pipe_size(const struct file *file, uint32_t wanted)
{
	if (file->ops != &pipe_ops)
		return -EBADF;
	if (wanted > PIPE_CAPACITY)
		return wanted > INT32_MAX ? -EINVAL : -EPERM;
	return PIPE_CAPACITY;
}

int fcntl_more(struct file *file, const struct trap_frame *frame)
{
	switch (frame->ecx) {
	case F_SETFD:
		files_set_close_on_exec(current->process->files, frame->ebx,
					frame->edx & FD_CLOEXEC);
		return 0;
	case F_GETFL:
		return flags_of(file);
	case F_SETFL:
		return file->flags & O_PATH ? -EBADF : set_flags(file, frame->edx);
	case F_SETOWN:
		return set_owner(file, frame->edx);
	case F_GETOWN:
		return file->owner;
	case F_GETOWN_EX:
		return give_owner(file->owner, frame->edx);
	case F_GETPIPE_SZ:
	case F_SETPIPE_SZ:
		return pipe_size(file, frame->ecx == F_SETPIPE_SZ ? frame->edx : 0);
	case F_GETLK ... F_SETLKW:
	case F_GETLK64 ... F_SETLKW64:
	case F_OFD_GETLK ... F_OFD_SETLKW:
		return lock_call(file, frame);
	}
	return -EINVAL;
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 330, "dup3", "fdo", sys_dup3 },
	{ 331, "pipe2", "po", sys_pipe2 },
	{ 436, "close_range", "ddx", sys_close_range },
};
