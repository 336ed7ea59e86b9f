/*
 * execve: makes a task run another program.
 *
 * Path, arguments and environment are copied out of the old program first: after the point of no
 * return (kernel/process/exec.c) its memory is gone. If it succeeds, it returns 0 to the
 * first instruction of the new program, whose registers are in the frame now.
 */
#include "fs/path_page.h"
#include "kernel/process/exec.h"
#include "kernel/process/file_calls.h"
#include "kernel/syscall/syscall.h"

/* Copies the strings out of the old program, and replaces it. */
static int exec_from_user(struct trap_frame *frame, const char *path)
{
	struct exec_strings strings;
	int error = exec_strings_create(&strings);

	if (error)
		return error;
	error = exec_add_from_user(&strings, frame->ecx, frame->edx);
	if (!error)
		error = exec(path, &strings, frame);
	exec_strings_destroy(&strings);
	return error;
}

static int sys_execve(struct trap_frame *frame)
{
	char *path;
	int error = path_from_user(frame->ebx, &path);

	if (error)
		return error;
	error = exec_from_user(frame, path);
	path_page_free(path);
	return error;
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 11, "execve", "spp", sys_execve },
};
