/*
 * A call's definition and its row in the table of calls, in one place: number, function, letters of
 * its arguments (struct syscall), and the result, an expression of the frame's registers. The
 * call's name is the function's without "sys_".
 *
 *	SYSCALL(40, sys_rmdir, "s", remove_at(HERE, frame->ebx, AT_REMOVEDIR))
 *	SYSCALL_OPEN(118, sys_fsync, "f", sync_file(file, false))
 *	SYSCALL_DEFINE(60, sys_umask, "o")	and the body, a function of `frame`, follows
 *
 * Calls of descriptors hold their files while they run: kernel/process/held_call.h.
 */
#pragma once

#include "kernel/abi/file.h"
#include "kernel/process/family.h"
#include "kernel/process/held_call.h"

#define SYSCALL_ROW_OF(number, name, arguments, function)                                          \
	static const struct syscall name##_row SYSCALL_TABLE = { number, &#name[4], arguments,     \
								 function };

#define SYSCALL_ROW(number, function, arguments)                                                   \
	SYSCALL_ROW_OF(number, function, arguments, function)

#define SYSCALL_DEFINE(number, function, arguments)                                                \
	static int function(struct trap_frame *frame);                                             \
	SYSCALL_ROW(number, function, arguments)                                                   \
	static int function(struct trap_frame *frame)

#define SYSCALL(number, function, arguments, result)                                               \
	CALL(function, result)                                                                     \
	SYSCALL_ROW(number, function, arguments)

/* Two numbers and names of the same call: Linux widened its arguments, and these are as good. */
#define SYSCALL_PAIR(number, function, number32, name, arguments, result)                          \
	SYSCALL(number, function, arguments, result)                                               \
	SYSCALL_ROW_OF(number32, name, arguments, function)

/* `file` is the open file of argument 0, or NULL; it may be only a path (O_PATH). */
#define SYSCALL_FILE(number, function, arguments, result)                                          \
	FILE_CALL(function, result)                                                                \
	SYSCALL_ROW(number, function, arguments)

/* The same; -EBADF before all other errors for NULL and O_PATH, which most calls refuse. */
#define SYSCALL_OPEN(number, function, arguments, result)                                          \
	SYSCALL_FILE(number, function, arguments, file_opened(file) ? (result) : -EBADF)

/* A call that uses the file's offset, which is locked meanwhile; the file may be NULL. */
#define SYSCALL_OFFSET(number, function, arguments, result)                                        \
	OFFSET_CALL(function, result)                                                              \
	SYSCALL_ROW(number, function, arguments)

/* A call of the process whose pid argument 0 is (0: the current one); -ESRCH without such a one. */
#define SYSCALL_PROCESS(number, function, arguments, result)                                       \
	SYSCALL_DEFINE(number, function, arguments)                                                \
	{                                                                                          \
		struct process *process = process_of_call(frame->ebx);                             \
                                                                                                   \
		return process ? (result) : -ESRCH;                                                \
	}

/* Copies from the current task's memory, as give does to it: 0 or -EFAULT. */
static inline int fetch(void *to, uint32_t from, uint32_t length)
{
	return copy_from_user(to, from, length) == 0 ? 0 : -EFAULT;
}

/* The calling program's process number, which all of its threads have: getpid(2). */
static inline int32_t calling_pid(void)
{
	return current->process->leader->task->pid;
}

/* The file; NULL when there is none, or only a path (O_PATH). */
static inline struct file *file_opened(struct file *file)
{
	return file && !(file->flags & O_PATH) ? file : NULL;
}

/* Calls `release` with a variable's address when its block is left, on every path: as Linux's
 * __free (include/linux/cleanup.h). The variable begins as NULL, or as zeros, for which release
 * does nothing. */
#define CLEANUP(release) __attribute__((cleanup(release), unused))

/* For CLEANUP of what interrupts_disable returned. */
static inline void interrupts_leave(const bool *enabled)
{
	interrupts_restore(*enabled);
}
