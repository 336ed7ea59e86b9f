/* The system calls for files. */
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/libc/syscall.h"

long syscall(long number, ...)
{
	va_list list;
	long a[6];

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	return result_of(_syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}

/* Offsets have 64 bits, so a file may have more than 2 GiB. */
int open(const char *path, int flags, ...)
{
	va_list list;

	va_start(list, flags);
	mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;

	va_end(list);
	return result_of(_syscall3(SYS_open, (long)path, flags | O_LARGEFILE, mode));
}

int fcntl(int descriptor, int command, ...)
{
	va_list list;

	va_start(list, command);
	long argument = va_arg(list, long);

	va_end(list);
	return result_of(_syscall3(SYS_fcntl64, descriptor, command, argument));
}

int ioctl(int descriptor, unsigned long command, ...)
{
	va_list list;

	va_start(list, command);
	long argument = va_arg(list, long);

	va_end(list);
	return result_of(_syscall3(SYS_ioctl, descriptor, command, argument));
}

ssize_t read(int descriptor, void *buffer, size_t length)
{
	return result_of(_syscall3(SYS_read, descriptor, (long)buffer, length));
}

ssize_t write(int descriptor, const void *buffer, size_t length)
{
	return result_of(_syscall3(SYS_write, descriptor, (long)buffer, length));
}

/* An offset goes in two registers, the lower half first. */
ssize_t pread(int descriptor, void *buffer, size_t length, off_t offset)
{
	return result_of(
	    _syscall5(SYS_pread64, descriptor, (long)buffer, length, offset, offset >> 32));
}

ssize_t pwrite(int descriptor, const void *buffer, size_t length, off_t offset)
{
	return result_of(
	    _syscall5(SYS_pwrite64, descriptor, (long)buffer, length, offset, offset >> 32));
}

off_t lseek(int descriptor, off_t offset, int whence)
{
	off_t where;

	/* Here the upper half comes first. */
	if (result_of(
		_syscall5(SYS__llseek, descriptor, offset >> 32, offset, (long)&where, whence)) < 0)
		return -1;
	return where;
}

int ftruncate(int descriptor, off_t length)
{
	return result_of(_syscall3(SYS_ftruncate64, descriptor, length, length >> 32));
}

int close(int descriptor)
{
	return result_of(_syscall1(SYS_close, descriptor));
}

int dup(int descriptor)
{
	return result_of(_syscall1(SYS_dup, descriptor));
}

int dup2(int from, int to)
{
	return result_of(_syscall2(SYS_dup2, from, to));
}

int pipe(int descriptors[2])
{
	return result_of(_syscall1(SYS_pipe, (long)descriptors));
}

int fsync(int descriptor)
{
	return result_of(_syscall1(SYS_fsync, descriptor));
}

void sync(void)
{
	_syscall0(SYS_sync);
}

int isatty(int descriptor)
{
	char settings[64];

	return ioctl(descriptor, TCGETS, settings) == 0;
}

int poll(struct pollfd *files, unsigned long count, int timeout)
{
	return result_of(_syscall3(SYS_poll, (long)files, count, timeout));
}

int stat(const char *path, struct stat *status)
{
	return result_of(_syscall2(SYS_stat64, (long)path, (long)status));
}

int lstat(const char *path, struct stat *status)
{
	return result_of(_syscall2(SYS_lstat64, (long)path, (long)status));
}

int fstat(int descriptor, struct stat *status)
{
	return result_of(_syscall2(SYS_fstat64, descriptor, (long)status));
}

int access(const char *path, int mode)
{
	return result_of(_syscall2(SYS_access, (long)path, mode));
}

int mkdir(const char *path, mode_t mode)
{
	return result_of(_syscall2(SYS_mkdir, (long)path, mode));
}

int chmod(const char *path, mode_t mode)
{
	return result_of(_syscall2(SYS_chmod, (long)path, mode));
}

mode_t umask(mode_t mask)
{
	return _syscall1(SYS_umask, mask);
}

int unlink(const char *path)
{
	return result_of(_syscall1(SYS_unlink, (long)path));
}

int rmdir(const char *path)
{
	return result_of(_syscall1(SYS_rmdir, (long)path));
}

int link(const char *from, const char *to)
{
	return result_of(_syscall2(SYS_link, (long)from, (long)to));
}

int symlink(const char *target, const char *path)
{
	return result_of(_syscall2(SYS_symlink, (long)target, (long)path));
}

ssize_t readlink(const char *path, char *target, size_t size)
{
	return result_of(_syscall3(SYS_readlink, (long)path, (long)target, size));
}

int rename(const char *from, const char *to)
{
	return result_of(_syscall2(SYS_rename, (long)from, (long)to));
}

int chdir(const char *path)
{
	return result_of(_syscall1(SYS_chdir, (long)path));
}

char *getcwd(char *path, size_t size)
{
	return result_of(_syscall2(SYS_getcwd, (long)path, size)) < 0 ? NULL : path;
}
