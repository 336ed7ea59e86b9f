/*
 * The calls of user/account.c, linked with it. The drive that it reads is in
 * tests/storage/account.py: each call is a line on the standard output, and waits for a line on the
 * standard input.
 *
 *	\1r OFFSET LENGTH		pread: RESULT BYTES, in hexadecimal
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/host/question.h"

#define DRIVE 77 /* its descriptor */

int open(const char *path, int flags, ...)
{
	(void)path, (void)flags;
	question_begins();
	return DRIVE;
}

static unsigned digit(char letter)
{
	return letter <= '9' ? (unsigned)(letter - '0') : (unsigned)(letter - 'a' + 10);
}

ssize_t pread(int descriptor, void *buffer, size_t length, off_t offset)
{
	static char *line;
	static size_t room;
	char *at;

	if (descriptor != DRIVE) {
		errno = EBADF;
		return -1;
	}
	printf("\1r %" PRId64 " %zu\n", (int64_t)offset, length);
	fflush(stdout);
	if (getline(&line, &room, stdin) < 0)
		_exit(3);
	ssize_t count = strtol(line, &at, 10);

	if (count < 0) {
		errno = (int)-count;
		return -1;
	}
	at++;
	for (ssize_t i = 0; i < count && i < (ssize_t)length; i++, at += 2)
		((uint8_t *)buffer)[i] = (uint8_t)(digit(at[0]) << 4 | digit(at[1]));
	return count;
}
