/* Error numbers: Linux's for i386. */
#pragma once

/* Results from -ERROR_LAST to -1 are errors; others, such as addresses, are not. */
#define ERROR_LAST 4095

#define EPERM	     1
#define ENOENT	     2
#define ESRCH	     3
#define EINTR	     4
#define EIO	     5
#define ENXIO	     6
#define E2BIG	     7
#define ENOEXEC	     8
#define EBADF	     9
#define ECHILD	     10
#define EAGAIN	     11
#define ENOMEM	     12
#define EACCES	     13
#define EFAULT	     14
#define ENOTBLK	     15
#define EBUSY	     16
#define EEXIST	     17
#define EXDEV	     18
#define ENODEV	     19
#define ENOTDIR	     20
#define EISDIR	     21
#define EINVAL	     22
#define ENFILE	     23
#define EMFILE	     24
#define ENOTTY	     25
#define ETXTBSY	     26
#define EFBIG	     27
#define ENOSPC	     28
#define ESPIPE	     29
#define EROFS	     30
#define EMLINK	     31
#define EPIPE	     32
#define ERANGE	     34
#define EDEADLK	     35
#define ENAMETOOLONG 36
#define ENOLCK	     37
#define ENOSYS	     38
#define ENOTEMPTY    39
#define ELOOP	     40
#define ENODATA	     61 /* no such attribute */
#define EBADMSG	     74 /* a wrong checksum */
#define EOVERFLOW    75
#define ELIBBAD	     80
#define EOPNOTSUPP   95
#define ETIMEDOUT    110
#define ESTALE	     116
#define EUCLEAN	     117 /* "structure needs cleaning": the disk's contents contradict themselves */
