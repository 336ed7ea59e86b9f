/*
 * A computer for user/seekrw.c, linked with it: one file or block device, and a clock that counts
 * what each call costs. The first line of the standard input describes it:
 *
 *	KIND SIZE ALIGN COST EVERY SHORT BROKEN MOVED
 *
 *	KIND			f file, b block device, m one that does not tell its size,
 *				c character device, d directory
 *	ALIGN			bytes, of the memory and the offsets of direct I/O
 *	COST			nanoseconds of an operation; each takes 10 more than the last one
 *	EVERY			each operation of so many makes a request to the device
 *	SHORT, BROKEN, MOVED	the number of an operation that moves too little, fails, or reads
 *				a stamp of another place; -1: none
 *
 * At the end a line "== calls" is printed, then a line for each call: its letter, and for r and w
 * the offset, the length, and whether the data were stamps of that place. tests/storage/seekrw.py
 * judges.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "labs/storage/stamp.h"

#define CALLS_MAX     100000u
#define TARGET	      77 /* its descriptor */
#define CLOCK_NS      5u
#define ALLOCATE_NS   200000u
#define CALL_NS	      1000000u
#define OPEN_NS	      3000000u
#define LATER_NS      10u
#define SECTOR	      512u
#define SECTORS_OF_32 UINT64_C(0xffffffff)

struct call {
	char letter;
	bool stamped;
	uint64_t offset, length;
};

static struct call calls[CALLS_MAX];
static unsigned call_count;
static char kind;
static uint64_t size, align, cost, every, now, done, requests, sectors;
static int64_t short_at, broken_at, moved_at;
static bool is_ready, is_direct;

/* What was written last, and what was in this memory when somebody looked at the clock. */
static const void *written;
static size_t written_length;
static uint32_t sum_then;

/* In libasan, if the program has it. */
int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void *, size_t),
					      void (*freed)(const volatile void *))
    __attribute__((weak));

static struct call *add(char letter, uint64_t ns)
{
	struct call *call = &calls[call_count < CALLS_MAX - 1 ? call_count++ : call_count];

	now += ns;
	*call = (struct call){ .letter = letter };
	return call;
}

static void on_allocate(const volatile void *memory, size_t length)
{
	(void)memory, (void)length;
	if (is_ready)
		add('a', ALLOCATE_NS);
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

static void __attribute__((constructor)) prepare(void)
{
	char line[256] = "";

	if (read(STDIN_FILENO, line, sizeof(line) - 1) < 0)
		_exit(3);
	sscanf(line,
	       "%c %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64
	       " %" SCNd64,
	       &kind, &size, &align, &cost, &every, &short_at, &broken_at, &moved_at);
	if (__sanitizer_install_malloc_and_free_hooks)
		__sanitizer_install_malloc_and_free_hooks(on_allocate, on_free);
	is_ready = true;
}

static void __attribute__((destructor)) tell(void)
{
	is_ready = false;
	printf("== calls\n");
	for (const struct call *call = calls; call < calls + call_count; call++)
		printf("%c %" PRIu64 " %" PRIu64 " %d\n", call->letter, call->offset, call->length,
		       call->stamped);
	fflush(stdout);
}

/* --- the calls --- */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	add('c', CLOCK_NS);
	if (written)
		sum_then = sum_of(written, written_length);
	*time = (struct timespec){ now / 1000000000, (long)(now % 1000000000) };
	return 0;
}

int isatty(int descriptor)
{
	(void)descriptor;
	errno = ENOTTY;
	return 0;
}

static int describe(struct stat *status)
{
	add('s', CALL_NS);
	*status = (struct stat){ .st_dev = makedev(kind == 'f' ? 3 : 0, kind == 'f' ? 64 : 5),
				 .st_rdev = makedev(3, 64),
				 .st_size = kind == 'f' ? (off_t)size : 0 };
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
	add('o', OPEN_NS);
	is_direct = flags & O_DIRECT;
	return TARGET;
}

off_t lseek(int descriptor, off_t offset, int whence)
{
	(void)descriptor;
	add('l', CALL_NS);
	return whence == SEEK_END ? (off_t)size + offset : offset;
}

int ioctl(int descriptor, unsigned long request, ...)
{
	va_list arguments;

	va_start(arguments, request);
	void *out = va_arg(arguments, void *);
	va_end(arguments);
	add('i', CALL_NS);
	errno = kind != 'b' || descriptor != TARGET ? ENOTTY : EFBIG; /* m tells nothing */
	if (errno == ENOTTY || (request == BLKGETSIZE && size / SECTOR > SECTORS_OF_32))
		return -1;
	if (request == BLKGETSIZE64)
		memcpy(out, &size, sizeof(size));
	else if (request == BLKGETSIZE)
		*(unsigned long *)out = (unsigned long)(size / SECTOR);
	else
		*(int *)out = SECTOR;
	return 0;
}

FILE *fopen(const char *path, const char *mode)
{
	static char text[256];

	add('f', OPEN_NS);
	if (strcmp(path, "/proc/diskstats") != 0)
		return NULL;
	snprintf(text, sizeof(text), "   3      64 hdb %" PRIu64 " 0 %" PRIu64 " 0 0 0 0 0 0 0 0\n",
		 requests, sectors);
	return fmemopen(text, strlen(text), mode);
}

/* --- operations --- */

static ssize_t refuse(int error)
{
	errno = error;
	return -1;
}

/* Counts it; the bytes that it moves, or -1. */
static ssize_t operate(char letter, uintptr_t buffer, size_t length, off_t offset)
{
	uint64_t number = done++, at = (uint64_t)offset;
	struct call *call = add(letter, cost + number * LATER_NS);

	call->offset = at;
	call->length = length;
	if (is_direct && (buffer % align || at % align || length % SECTOR))
		return refuse(EINVAL);
	if ((int64_t)number == broken_at)
		return refuse(EIO);
	if (offset < 0 || at > size)
		return refuse(offset < 0 ? EINVAL : ENXIO);
	if (number % every == 0) {
		requests++;
		sectors += length / SECTOR;
	}
	if (length > size - at)
		length = size - at;
	return (ssize_t)((int64_t)number == short_at ? length / 2 : length);
}

ssize_t pread(int descriptor, void *buffer, size_t length, off_t offset)
{
	uint64_t moved = (int64_t)done == moved_at ? SECTOR : 0;
	ssize_t count = operate('r', (uintptr_t)buffer, length, offset);

	(void)descriptor;
	for (ssize_t i = 0; i + (ssize_t)SECTOR <= count; i += SECTOR) {
		uint64_t place = (uint64_t)(offset + i) + moved;
		struct stamped_sector sector;

		stamp_fill(&sector, 'b', place / SECTOR, place);
		memcpy((char *)buffer + i, &sector, sizeof(sector));
	}
	return count;
}

/* Stamps that were written after the last look at the clock are in the measured time. */
ssize_t pwrite(int descriptor, const void *buffer, size_t length, off_t offset)
{
	if (written == buffer && sum_of(buffer, length) != sum_then)
		add('t', ALLOCATE_NS);
	written = buffer;
	written_length = length;
	ssize_t count = operate('w', (uintptr_t)buffer, length, offset);
	struct call *call = &calls[call_count - 1];

	(void)descriptor;
	call->stamped = true;
	for (ssize_t i = 0; i + (ssize_t)SECTOR <= count; i += SECTOR) {
		uint64_t place = (uint64_t)(offset + i);
		struct stamped_sector sector;

		stamp_fill(&sector, 'b', place / SECTOR, place);
		call->stamped &= memcmp((const char *)buffer + i, &sector, sizeof(sector)) == 0;
	}
	return count;
}
