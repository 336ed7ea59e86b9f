/* The names of error numbers. */
#include "kernel/errno.h"

#include <stddef.h>

static const struct {
	int number;
	const char *name;
} names[] = {
	{ EPERM, "EPERM" },
	{ ENOENT, "ENOENT" },
	{ EIO, "EIO" },
	{ ENXIO, "ENXIO" },
	{ ENOMEM, "ENOMEM" },
	{ EBUSY, "EBUSY" },
	{ ENODEV, "ENODEV" },
	{ ENOTDIR, "ENOTDIR" },
	{ EISDIR, "EISDIR" },
	{ EINVAL, "EINVAL" },
	{ EFBIG, "EFBIG" },
	{ ENOSPC, "ENOSPC" },
	{ EROFS, "EROFS" },
	{ ENAMETOOLONG, "ENAMETOOLONG" },
	{ ELOOP, "ELOOP" },
	{ EOPNOTSUPP, "EOPNOTSUPP" },
	{ ETIMEDOUT, "ETIMEDOUT" },
	{ EUCLEAN, "EUCLEAN" },
};

const char *errno_name(int error)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].number == error)
			return names[i].name;
	return "unknown error";
}
