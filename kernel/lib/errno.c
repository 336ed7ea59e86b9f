/*
 * The names of error numbers: 2 is "ENOENT".
 *
 * The table is indexed by the number. Linux's numbers on i386 have gaps (41 and 58 are unused), and
 * the kernel uses only some of the others: such an entry is NULL. Messages print the name, because
 * nobody remembers that 117 is EUCLEAN.
 */
#include "kernel/lib/errno.h"

#include <stddef.h>

#define NAMED(number) [number] = #number

static const char *const names[] = {
	NAMED(EPERM),	  NAMED(ENOENT),    NAMED(ESRCH),   NAMED(EINTR),     NAMED(EIO),
	NAMED(ENXIO),	  NAMED(E2BIG),	    NAMED(ENOEXEC), NAMED(EBADF),     NAMED(ECHILD),
	NAMED(EAGAIN),	  NAMED(ENOMEM),    NAMED(EACCES),  NAMED(EFAULT),    NAMED(EBUSY),
	NAMED(EEXIST),	  NAMED(EXDEV),	    NAMED(ENODEV),  NAMED(ENOTDIR),   NAMED(EISDIR),
	NAMED(EINVAL),	  NAMED(ENFILE),    NAMED(EMFILE),  NAMED(ENOTTY),    NAMED(ETXTBSY),
	NAMED(EFBIG),	  NAMED(ENOSPC),    NAMED(ESPIPE),  NAMED(EROFS),     NAMED(EMLINK),
	NAMED(EPIPE),	  NAMED(ENODATA),   NAMED(ERANGE),  NAMED(EDEADLK),   NAMED(ENAMETOOLONG),
	NAMED(ENOSYS),	  NAMED(ENOTEMPTY), NAMED(ELOOP),   NAMED(EOVERFLOW), NAMED(EOPNOTSUPP),
	NAMED(ETIMEDOUT), NAMED(EUCLEAN),   NAMED(ELIBBAD), NAMED(ENOLCK),    NAMED(ENOTBLK),
	NAMED(ESTALE),	  NAMED(EBADMSG)
};

const char *errno_name(int error)
{
	const size_t count = sizeof(names) / sizeof(names[0]);

	return error >= 0 && (size_t)error < count && names[error] ? names[error] : "unknown error";
}
