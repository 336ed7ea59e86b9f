/* open and fcntl: Linux's numbers for i386. */
#pragma once

/* Flags of open. */
#define O_ACCMODE  03
#define O_RDONLY   00
#define O_WRONLY   01
#define O_RDWR	   02
#define O_CREAT	   0100
#define O_EXCL	   0200
#define O_NOCTTY   0400
#define O_TRUNC	   01000
#define O_APPEND   02000
#define O_NONBLOCK 04000
#define O_CLOEXEC  02000000

/* Commands of fcntl, and the flag of a descriptor. */
#define F_DUPFD		0
#define F_GETFD		1
#define F_DUPFD_CLOEXEC 1030
#define FD_CLOEXEC	1
