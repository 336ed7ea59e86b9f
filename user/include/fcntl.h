/* Opening files. */
#pragma once

#include <sys/types.h>

#define O_RDONLY    0
#define O_WRONLY    1
#define O_RDWR	    2
#define O_ACCMODE   3
#define O_CREAT	    0100
#define O_EXCL	    0200
#define O_TRUNC	    01000
#define O_APPEND    02000
#define O_NONBLOCK  04000
#define O_DIRECT    040000
#define O_DIRECTORY 0200000
#define O_CLOEXEC   02000000

#define AT_FDCWD -100 /* openat: from the current directory */

#define F_DUPFD		0
#define F_GETFD		1
#define F_SETFD		2
#define F_GETFL		3
#define F_SETFL		4
#define F_DUPFD_CLOEXEC 1030
#define FD_CLOEXEC	1

/* With O_CREAT a mode follows. */
int open(const char *path, int flags, ...);

/* The argument, where the command has one, is an int. */
int fcntl(int descriptor, int command, ...);
