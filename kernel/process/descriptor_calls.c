/*
 * System calls that pass descriptors on: what a shell does between fork and exec.
 *
 *	ls > list	open("list") = 3, dup2(3, 1), close(3), and then exec
 *	ls | cat	pipe = 3, 4; in one child dup2(4, 1), in the other dup2(3, 0)
 *
 * Descriptors of one open file share its offset. Each has its own FD_CLOEXEC: exec closes those
 * that have it, so a program need not know what its shell has open.
 *
 * All run for the current task; none of them sleeps, except where closing a file does.
 */
#include "kernel/process/descriptor_calls.h"

#include "fs/pipe.h"
#include "kernel/process/file_calls.h"
#include "kernel/process/held_call.h"

/* The table takes the reference only if it takes the file. */
static int descriptor_duplicate(struct file *file, uint32_t lowest, bool close_on_exec)
{
	if (!file)
		return -EBADF;
	int added = files_add(current->process->files, file, lowest, close_on_exec);

	if (added >= 0)
		file->references++;
	return added;
}

/* The file that had the number is closed. It may be the same file, so that one is held first. */
int descriptor_duplicate_to(struct file *file, uint32_t to, bool close_on_exec)
{
	if (!file)
		return -EBADF;
	file->references++;
	int added = files_replace(current->process->files, to, file, close_on_exec);

	if (added < 0)
		file_release(file);
	return added;
}

/* The lowest free number: after close(0) that is 0, which old shells rely on. */
FILE_CALL(sys_dup, descriptor_duplicate(file, 0, false))

/* A duplicate to itself changes nothing, but the descriptor must be open. */
static int duplicate_to(struct file *file, const struct trap_frame *frame)
{
	if (frame->ebx == frame->ecx)
		return file ? (int)frame->ebx : -EBADF;
	return descriptor_duplicate_to(file, frame->ecx, false);
}

FILE_CALL(sys_dup2, duplicate_to(file, frame))

int descriptors_give_two(uint32_t address, struct file *one, struct file *other, uint32_t flags)
{
	int32_t first = descriptor_add(one, flags), second = descriptor_add(other, flags);
	const int32_t numbers[] = { first, second };
	int error = first < 0 ? first : second < 0 ? second : 0;

	error = error ?: give(address, numbers, sizeof(numbers));

	for (unsigned i = 0; error && i < 2; i++)
		files_close(current->process->files, numbers[i]); /* refuses what is not a number */
	return error;
}

int descriptors_of_pipe(uint32_t address, uint32_t flags)
{
	struct file *reader, *writer;
	int error = pipe_create(flags & O_NONBLOCK, &reader, &writer);

	return error ? error : descriptors_give_two(address, reader, writer, flags);
}

/* Two descriptors, to read from and to write to, in an array of the program. */
CALL(sys_pipe, descriptors_of_pipe(frame->ebx, 0))

/* F_DUPFD is dup with a lowest number: a shell uses it to move its own descriptors out of the way.
 */
static int control(struct file *file, const struct trap_frame *frame)
{
	const struct files *files = current->process->files;

	if (!file)
		return -EBADF;
	switch (frame->ecx) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC: /* the lowest number must be one that a descriptor can have */
		if (frame->edx >= files->limits[LIMIT_FILES].soft)
			return -EINVAL;
		return descriptor_duplicate(file, frame->edx, frame->ecx == F_DUPFD_CLOEXEC);
	case F_GETFD:
		return files_closes_on_exec(files, frame->ebx) ? FD_CLOEXEC : 0;
	}
	return fcntl_more ? fcntl_more(file, frame) : -EINVAL;
}

FILE_CALL(sys_fcntl, control(file, frame))

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 41, "dup", "f", sys_dup },	      { 42, "pipe", "p", sys_pipe },
	{ 55, "fcntl", "fdx", sys_fcntl },    { 63, "dup2", "fd", sys_dup2 },
	{ 221, "fcntl64", "fdx", sys_fcntl },
};
