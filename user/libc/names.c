/* The texts of error numbers and of signals, as Linux's C libraries say them. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct name {
	int number;
	const char *text;
};

static const struct name errors[] = {
	{ 0, "Success" },
	{ EPERM, "Operation not permitted" },
	{ ENOENT, "No such file or directory" },
	{ ESRCH, "No such process" },
	{ EINTR, "Interrupted system call" },
	{ EIO, "Input/output error" },
	{ ENXIO, "No such device or address" },
	{ E2BIG, "Argument list too long" },
	{ ENOEXEC, "Exec format error" },
	{ EBADF, "Bad file descriptor" },
	{ ECHILD, "No child processes" },
	{ EAGAIN, "Resource temporarily unavailable" },
	{ ENOMEM, "Cannot allocate memory" },
	{ EACCES, "Permission denied" },
	{ EFAULT, "Bad address" },
	{ EBUSY, "Device or resource busy" },
	{ EEXIST, "File exists" },
	{ EXDEV, "Invalid cross-device link" },
	{ ENODEV, "No such device" },
	{ ENOTDIR, "Not a directory" },
	{ EISDIR, "Is a directory" },
	{ EINVAL, "Invalid argument" },
	{ ENFILE, "Too many open files in system" },
	{ EMFILE, "Too many open files" },
	{ ENOTTY, "Inappropriate ioctl for device" },
	{ ETXTBSY, "Text file busy" },
	{ EFBIG, "File too large" },
	{ ENOSPC, "No space left on device" },
	{ ESPIPE, "Illegal seek" },
	{ EROFS, "Read-only file system" },
	{ EMLINK, "Too many links" },
	{ EPIPE, "Broken pipe" },
	{ ERANGE, "Numerical result out of range" },
	{ ENAMETOOLONG, "File name too long" },
	{ ENOSYS, "Function not implemented" },
	{ ENOTEMPTY, "Directory not empty" },
	{ ELOOP, "Too many levels of symbolic links" },
	{ EOPNOTSUPP, "Operation not supported" },
};

static const struct name signals[] = {
	{ SIGHUP, "Hangup" },
	{ SIGINT, "Interrupt" },
	{ SIGQUIT, "Quit" },
	{ SIGILL, "Illegal instruction" },
	{ SIGTRAP, "Trace/breakpoint trap" },
	{ SIGABRT, "Aborted" },
	{ SIGBUS, "Bus error" },
	{ SIGFPE, "Floating point exception" },
	{ SIGKILL, "Killed" },
	{ SIGUSR1, "User defined signal 1" },
	{ SIGSEGV, "Segmentation fault" },
	{ SIGUSR2, "User defined signal 2" },
	{ SIGPIPE, "Broken pipe" },
	{ SIGALRM, "Alarm clock" },
	{ SIGTERM, "Terminated" },
	{ SIGCHLD, "Child exited" },
	{ SIGCONT, "Continued" },
	{ SIGSTOP, "Stopped (signal)" },
	{ SIGTSTP, "Stopped" },
	{ SIGTTIN, "Stopped (tty input)" },
	{ SIGTTOU, "Stopped (tty output)" },
};

static char *find(const struct name *names, size_t count, int number, const char *kind)
{
	static char unknown[32];

	for (size_t i = 0; i < count; i++)
		if (names[i].number == number)
			return (char *)names[i].text;
	snprintf(unknown, sizeof(unknown), "Unknown %s %d", kind, number);
	return unknown;
}

char *strerror(int error)
{
	return find(errors, sizeof(errors) / sizeof(errors[0]), error, "error");
}

char *strsignal(int number)
{
	return find(signals, sizeof(signals) / sizeof(signals[0]), number, "signal");
}
