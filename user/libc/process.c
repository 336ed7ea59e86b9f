/* The system calls for processes and for their memory. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/libc/syscall.h"

#define PAGE_SHIFT 12

pid_t fork(void)
{
	return result_of(_syscall0(SYS_fork));
}

int execve(const char *path, char *const arguments[], char *const environment[])
{
	return result_of(_syscall3(SYS_execve, (long)path, (long)arguments, (long)environment));
}

int execv(const char *path, char *const arguments[])
{
	return execve(path, arguments, environ);
}

/* Tries each folder of PATH in turn. What is there, but must not be run, is the better answer. */
int execvp(const char *name, char *const arguments[])
{
	const char *folders = getenv("PATH");
	char path[PATH_MAX];
	int error = ENOENT;

	if (strchr(name, '/'))
		return execv(name, arguments);
	for (const char *part = folders ? folders : "/bin"; part; part = strchr(part, ':')) {
		part += *part == ':';
		int length = strcspn(part, ":");

		snprintf(path, sizeof(path), "%.*s%s%s", length, part, length ? "/" : "", name);
		execv(path, arguments);
		if (errno != ENOENT && errno != ENOTDIR)
			error = errno;
	}
	errno = error;
	return -1;
}

int setpriority(int which, int who, int value)
{
	return result_of(_syscall3(SYS_setpriority, which, who, value));
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	return result_of(_syscall4(SYS_wait4, pid, (long)status, options, 0));
}

pid_t wait(int *status)
{
	return waitpid(-1, status, 0);
}

pid_t getpid(void)
{
	return _syscall0(SYS_getpid);
}

pid_t getppid(void)
{
	return _syscall0(SYS_getppid);
}

pid_t gettid(void)
{
	return _syscall0(SYS_gettid);
}

uid_t getuid(void)
{
	return _syscall0(SYS_getuid32);
}

int setpgid(pid_t pid, pid_t group)
{
	return result_of(_syscall2(SYS_setpgid, pid, group));
}

pid_t getpgrp(void)
{
	return _syscall0(SYS_getpgrp);
}

pid_t setsid(void)
{
	return result_of(_syscall0(SYS_setsid));
}

pid_t tcgetpgrp(int terminal)
{
	pid_t group;

	return ioctl(terminal, TIOCGPGRP, &group) < 0 ? -1 : group;
}

int tcsetpgrp(int terminal, pid_t group)
{
	return ioctl(terminal, TIOCSPGRP, &group);
}

int sched_yield(void)
{
	return result_of(_syscall0(SYS_sched_yield));
}

int reboot(int command)
{
	return result_of(_syscall3(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, command));
}

void *mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset)
{
	return (void *)result_of(_syscall6(SYS_mmap2, (long)address, length, protection, flags,
					   descriptor, offset >> PAGE_SHIFT));
}

int munmap(void *address, size_t length)
{
	return result_of(_syscall2(SYS_munmap, (long)address, length));
}

int mprotect(void *address, size_t length, int protection)
{
	return result_of(_syscall3(SYS_mprotect, (long)address, length, protection));
}
