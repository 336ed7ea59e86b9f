/* Error numbers: Linux's values for i386. Functions that can fail return one of them negated. */
#pragma once

#define EPERM	     1
#define ENOENT	     2
#define EIO	     5
#define ENXIO	     6
#define ENOMEM	     12
#define EBUSY	     16
#define ENODEV	     19
#define ENOTDIR	     20
#define EISDIR	     21
#define EINVAL	     22
#define EFBIG	     27
#define ENOSPC	     28
#define EROFS	     30
#define ENAMETOOLONG 36
#define ELOOP	     40
#define ETIMEDOUT    110
#define EOPNOTSUPP   95
#define EUCLEAN	     117 /* "structure needs cleaning": the disk's contents contradict themselves */

/* The name of a (positive) error number, such as "EIO"; "unknown error" for others. */
const char *errno_name(int error);
