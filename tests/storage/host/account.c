/*
 * The calls of user/account.c, linked with it. The drive that it reads is in
 * tests/storage/account.py, which is asked for each call.
 *
 *	r OFFSET LENGTH		pread: RESULT BYTES, in hexadecimal
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/host/question.h"
#include "tests/storage/host/asked.h"

#define DRIVE 77 /* its descriptor */

int open(const char *path, int flags, ...)
{
	(void)path, (void)flags;
	question_begins();
	return DRIVE;
}

ssize_t pread(int descriptor, void *buffer, size_t length, off_t offset)
{
	if (descriptor != DRIVE) {
		errno = EBADF;
		return -1;
	}
	char *bytes, *line = ask("r %" PRId64 " %zu", (int64_t)offset, length);
	ssize_t count = strtol(line, &bytes, 10);

	if (count < 0) {
		errno = (int)-count;
		return -1;
	}
	take_hex(buffer, (size_t)count < length ? (size_t)count : length, bytes + 1);
	return count;
}
