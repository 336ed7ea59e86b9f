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

/* Programs expect at least argv[0]: without one it is empty. */
static int add_missing(struct exec_strings *strings, uint32_t arguments)
{
	uint32_t first = 0;
	uint32_t left = arguments ? copy_from_user(&first, arguments, sizeof(first)) : 0;

	return left || first ? 0 : exec_add(strings, "", &strings->arguments);
}

/* Copies the strings out of the old program, and replaces it. */
static int exec_from_user(struct trap_frame *frame, const char *path)
{
	struct exec_strings strings;
	int error = exec_strings_create(&strings);

	if (error)
		return error;
	error = add_missing(&strings, frame->ecx);
	if (!error)
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
