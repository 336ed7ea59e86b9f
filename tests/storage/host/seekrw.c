/*
 * The calls of user/seekrw.c, linked with it. The computer itself, with its one file or block
 * device and its clock, is tests/storage/seekrw.py: each call is a line on the standard output,
 * and waits for a line on the standard input. So a program knows nothing of that computer but what
 * a call has told it.
 *
 *	\1LETTER NUMBER NUMBER NUMBER NUMBER
 *		c clock, a memory, f fopen, i ioctl, l lseek, o open, s stat, y isatty, r pread,
 *		w pwrite; t: the next w writes what was made since the last c; e: the end
 *	NS RESULT NUMBER NUMBER NUMBER NUMBER
 *		the time, and what the call returns: a negative errno for an error
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "labs/storage/stamp.h"

#define TARGET	 77 /* its descriptor */
#define SECTOR	 512u
#define NUMBERS	 6
#define QUESTION "\1%c %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n"

enum { NOW, RESULT, MORE };

static bool is_ready;

/* What was written last, and what was in this memory when somebody looked at the clock. */
static const void *written;
static size_t written_length;
static uint32_t sum_then;

/* More than 128 MiB at once are too many: then there is no memory, and no end of the program. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "max_allocation_size_mb=128:allocator_may_return_null=1";
}

/* In libasan, if the program has it. */
int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void *, size_t),
					      void (*freed)(const volatile void *))
    __attribute__((weak));

/* Makes a call, and returns the answer's numbers. */
static const int64_t *call(char letter, int64_t a, int64_t b, int64_t c, int64_t d)
{
	static int64_t numbers[NUMBERS];
	char text[128];
	int length = snprintf(text, sizeof(text), QUESTION, letter, a, b, c, d);

	if (write(STDOUT_FILENO, text, (size_t)length) != length)
		_exit(3);
	if (fgets(text, sizeof(text), stdin) == NULL)
		_exit(3);
	char *at = text;

	for (unsigned i = 0; i < NUMBERS; i++)
		numbers[i] = strtoll(at, &at, 10);
	return numbers;
}

/* The call's result; errno and -1 for an error. */
static int64_t result_of(const int64_t *numbers)
{
	if (numbers[RESULT] >= 0)
		return numbers[RESULT];
	errno = (int)-numbers[RESULT];
	return -1;
}

static void on_allocate(const volatile void *memory, size_t length)
{
	(void)memory, (void)length;
	if (is_ready)
		call('a', 0, 0, 0, 0);
}

static void on_free(const volatile void *memory)
{
	if (memory == written)
		written = NULL;
}

static uint32_t sum_of(const uint8_t *bytes, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < length; i++)
		sum = sum * 31 + bytes[i];
	return sum;
}

/* Nothing is allocated for the answers: that would be a call. */
static void __attribute__((constructor)) prepare(void)
{
	static char answers[BUFSIZ];

	setvbuf(stdin, answers, _IOFBF, sizeof(answers));
	if (__sanitizer_install_malloc_and_free_hooks)
		__sanitizer_install_malloc_and_free_hooks(on_allocate, on_free);
	is_ready = true;
}

static void __attribute__((destructor)) end(void)
{
	is_ready = false;
	call('e', 0, 0, 0, 0);
}

/* --- the calls --- */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	int64_t now = call('c', 0, 0, 0, 0)[NOW];

	if (written)
		sum_then = sum_of(written, written_length);
	*time = (struct timespec){ now / 1000000000, (long)(now % 1000000000) };
	return 0;
}

int isatty(int descriptor)
{
	errno = ENOTTY;
	return (int)call('y', descriptor, 0, 0, 0)[RESULT];
}

static int describe(struct stat *status)
{
	const int64_t *numbers = call('s', 0, 0, 0, 0);
	char kind = (char)numbers[MORE];

	*status = (struct stat){ .st_dev = makedev(kind == 'f' ? 3 : 0, kind == 'f' ? 64 : 5),
				 .st_rdev = makedev(3, 64),
				 .st_size = (off_t)numbers[MORE + 1] };
	status->st_mode = kind == 'f'	? S_IFREG
			  : kind == 'c' ? S_IFCHR
			  : kind == 'd' ? S_IFDIR
					: S_IFBLK;
	return 0;
}

int stat(const char *path, struct stat *status)
{
	(void)path;
	return describe(status);
}

int fstat(int descriptor, struct stat *status)
{
	(void)descriptor;
	return describe(status);
}

int open(const char *path, int flags, ...)
{
	(void)path;
	call('o', (flags & O_DIRECT) != 0, 0, 0, 0);
	return TARGET;
}

off_t lseek(int descriptor, off_t offset, int whence)
{
	(void)descriptor;
	return (off_t)result_of(call('l', offset, whence == SEEK_END, 0, 0));
}

/* The computer is told which of the two requests for a size it is, if it is one. */
int ioctl(int descriptor, unsigned long request, ...)
{
	va_list arguments;
	bool is_size = request == BLKGETSIZE64, is_count = request == BLKGETSIZE;

	va_start(arguments, request);
	void *out = va_arg(arguments, void *);
	va_end(arguments);
	const int64_t *numbers = call('i', descriptor == TARGET, is_size, is_count, 0);

	if (result_of(numbers) < 0)
		return -1;
	if (is_size)
		memcpy(out, &numbers[MORE], sizeof(uint64_t));
	else if (is_count)
		*(unsigned long *)out = (unsigned long)numbers[MORE];
	else
		*(int *)out = SECTOR;
	return 0;
}

FILE *fopen(const char *path, const char *mode)
{
	static char text[256];
	const int64_t *numbers = call('f', strcmp(path, "/proc/diskstats") == 0, 0, 0, 0);

	if (result_of(numbers) < 0)
		return NULL;
	numbers += MORE;
	snprintf(text, sizeof(text),
		 "   3      64 hdb %" PRId64 " 0 %" PRId64 " 0 %" PRId64 " 0 %" PRId64 " 0 0 0 0\n",
		 numbers[0], numbers[1], numbers[2], numbers[3]);
	return fmemopen(text, strlen(text), mode);
}

/* --- operations --- */

static struct stamped_sector stamped(uint64_t place)
{
	struct stamped_sector sector;

	stamp_fill(&sector, 'b', place / SECTOR, place);
	return sector;
}

/* The answer says by how much the bytes are those of another place. */
ssize_t pread(int descriptor, void *buffer, size_t length, off_t offset)
{
	const int64_t *numbers = call('r', offset, (int64_t)length, (uintptr_t)buffer, 0);
	int64_t moved = numbers[MORE];
	ssize_t count = (ssize_t)result_of(numbers);

	(void)descriptor;
	for (ssize_t i = 0; i + (ssize_t)SECTOR <= count; i += SECTOR) {
		struct stamped_sector sector = stamped((uint64_t)(offset + i + moved));

		memcpy((char *)buffer + i, &sector, sizeof(sector));
	}
	return count;
}

/* Stamps that were written after the last look at the clock are in the measured time. */
ssize_t pwrite(int descriptor, const void *buffer, size_t length, off_t offset)
{
	bool all = true;

	(void)descriptor;
	for (size_t i = 0; i + SECTOR <= length; i += SECTOR) {
		struct stamped_sector sector = stamped((uint64_t)offset + i);

		all &= memcmp((const char *)buffer + i, &sector, sizeof(sector)) == 0;
	}
	if (written == buffer && sum_of(buffer, length) != sum_then)
		call('t', 0, 0, 0, 0);
	written = buffer;
	written_length = length;
	return (ssize_t)result_of(call('w', offset, (int64_t)length, (uintptr_t)buffer, all));
}
