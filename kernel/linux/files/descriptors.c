/*
 * Calls for descriptors that only Linux's programs make, and the commands of fcntl.
 *
 * FD_CLOEXEC belongs to the descriptor, so it is in the table of descriptors; all other flags
 * belong to the open file, which several descriptors may share. dup(2), pipe(2), close_range(2),
 * fcntl(2). Of these only locks sleep, and what closing a file does.
 */
#include "fs/pipe.h"
#include "kernel/linux/files/calls.h"
#include "kernel/process/descriptor_calls.h"

/* What F_SETFL may change of an open file: fcntl(2), "File status flags". */
#define SETTABLE	    (O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME)
#define CLOSE_RANGE_ON_EXEC 4u

/* Closes them, or has exec close them. Numbers that are not open are skipped. */
static int close_range(uint32_t first, uint32_t last, uint32_t flags)
{
	struct files *files = current->process->files;
	uint32_t end = last < files->count ? last + 1 : files->count;

	if (first > last || flags & ~CLOSE_RANGE_ON_EXEC)
		return -EINVAL;
	for (uint32_t i = first; i < end; i++)
		if (flags)
			files_set_close_on_exec(files, i, true);
		else
			files_close(files, i);
	return 0;
}

SYSCALL(436, sys_close_range, "ddx", close_range(frame->ebx, frame->ecx, frame->edx))

/* Unlike dup2(2) it refuses a duplicate to itself, and knows O_CLOEXEC. */
SYSCALL_FILE(330, sys_dup3, "fdo",
	     frame->ebx == frame->ecx || frame->edx & ~O_CLOEXEC
		 ? -EINVAL
		 : descriptor_duplicate_to(file, frame->ecx, frame->edx))

/* O_DIRECT, for a pipe that keeps writes apart, is refused: pipe(2) allows that where it is not
 * supported. */
SYSCALL(331, sys_pipe2, "po",
	frame->ecx & ~(O_CLOEXEC | O_NONBLOCK) ? -EINVAL
					       : descriptors_of_pipe(frame->ebx, frame->ecx))

/* The call that C libraries make in place of F_GETOWN, whose result may look like an error. */
static int give_file_owner(int32_t owner, uint32_t address)
{
	const int32_t answer[] = { owner < 0 ? F_OWNER_PGRP : F_OWNER_PID,
				   owner < 0 ? -owner : owner };

	return give(address, answer, sizeof(answer));
}

/* A process, or a group: its number, negative. 0: nobody. */
static int set_file_owner(struct file *file, int32_t owner)
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

/* What F_SETFL may change; other flags are ignored. O_ASYNC only where something comes. */
static int set_file_flags(struct file *file, uint32_t flags)
{
	if ((file->flags ^ flags) & O_APPEND && file->inode && file->inode->is_append_only)
		return -EPERM;
	if (flags & O_DIRECT && !inode_is(file->inode, S_IFREG) && !inode_is(file->inode, S_IFBLK))
		return -EINVAL;
	uint32_t settable = SETTABLE | (file->ops->is_stream ? O_ASYNC : 0);

	file->flags = (file->flags & ~settable) | (flags & settable);
	return 0;
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

/* The commands beyond F_DUPFD and F_GETFD, which kernel/process/descriptor_calls.c has. Those about
 * the descriptor take it from the frame, those about the open file get that. */
int fcntl_more(struct file *file, const struct trap_frame *frame)
{
	switch (frame->ecx) {
	case F_SETFD:
		files_set_close_on_exec(current->process->files, frame->ebx,
					frame->edx & FD_CLOEXEC);
		return 0;
	case F_GETFL: /* of a file that is only a path (O_PATH) without the access mode */
		return file->flags & O_PATH ? file->flags & ~O_ACCMODE : file->flags;
	case F_SETFL:
		return file->flags & O_PATH ? -EBADF : set_file_flags(file, frame->edx);
	case F_SETOWN:
		return set_file_owner(file, frame->edx);
	case F_GETOWN:
		return file->owner;
	case F_GETOWN_EX:
		return give_file_owner(file->owner, frame->edx);
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
