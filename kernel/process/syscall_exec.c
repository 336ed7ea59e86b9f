/* The system call that makes a task run another program. */
#include "fs/path.h"
#include "kernel/lib/errno.h"
#include "kernel/process/exec.h"
#include "kernel/syscall/syscall.h"
#include "mm/user_copy.h"

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
	char *path = path_page();

	if (!path)
		return -ENOMEM;
	int result = string_from_user(path, frame->ebx, EXEC_PATH);

	if (result >= 0)
		result = exec_from_user(frame, path);
	path_page_free(path);
	return result;
}

static const struct syscall calls[] SYSCALL_TABLE = {
	{ 11, "execve", "spp", sys_execve },
};
