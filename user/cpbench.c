/*
 * cpbench: copies a file in one of three ways, and says what that took; or compares two. The same
 * source runs here and on Linux.
 *
 *	read	read(FROM, buffer), write(TO, buffer)			2 calls a buffer, 2 copies
 *	mmap	map a buffer's length of FROM, write(TO, map)		3 calls, 1 copy, faults
 *	both	map as much of FROM and of TO, memcpy			4 calls, 1 copy, more faults
 *
 * The clock starts when both files are open and the buffer is there and touched. It stops after
 * fsync: what is only in the page cache has not been copied. There is an instructions_mark at each
 * of the two places.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRAM "cpbench"
#include "user/fail.h"
#include "labs/storage/measuring.h"
#include "user/measure.h"

#define PAGE_SIZE  4096u
#define SECTOR	   512u
#define BUFFER_MAX (64u << 20)
#define EXIT_USAGE 2

static const char usage[] =
    "usage: cpbench [-b BYTES] [-d] [-j] read|mmap|both FROM TO\n"
    "       cpbench compare FROM TO\n"
    "  -b BYTES  this many at a time, 512 to 67108864 (65536); for mmap and both whole pages\n"
    "  -d        past the page cache (O_DIRECT); only with read\n"
    "  -j        the result as JSON\n"
    "TO is made, or written over: what it had before is lost. compare writes nothing.\n";

struct options {
	const char *way, *from, *to;
	uint32_t bytes;
	bool direct, json;
};

struct copy {
	int from, to;
	uint64_t size, calls, ns;
	uint8_t *buffer;
};

static void __attribute__((noreturn)) fail_at(const char *what, const char *file)
{
	fail(EXIT_FAILURE, "%s cannot be %s: %s", file, what, strerror(errno));
}

/* ---- options ---- */

static uint32_t bytes_of(const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 0);

	if (*text < '0' || *text > '9' || *end || value < SECTOR || value > BUFFER_MAX)
		fail(EXIT_USAGE, "-b wants a whole number from %u to %u, not '%s'", SECTOR,
		     BUFFER_MAX, text);
	return value;
}

static bool is_way(const struct options *options, const char *way)
{
	return strcmp(options->way, way) == 0;
}

static void refuse_contradictions(const struct options *options)
{
	if (!is_way(options, "read") && !is_way(options, "mmap") && !is_way(options, "both") &&
	    !is_way(options, "compare"))
		fail(EXIT_USAGE, "there is no way '%s'\n%s", options->way, usage);
	if (options->direct && !is_way(options, "read"))
		fail(EXIT_USAGE, "-d goes with read only: pages that are mapped are cached");
	if (options->direct && options->bytes % SECTOR)
		fail(EXIT_USAGE, "with -d, BYTES must be a multiple of %u, and %u is not", SECTOR,
		     options->bytes);
	if (!is_way(options, "read") && options->bytes % PAGE_SIZE)
		fail(EXIT_USAGE, "with %s, BYTES must be a multiple of %u, and %u is not",
		     options->way, PAGE_SIZE, options->bytes);
}

static struct options read_options(int count, char **words)
{
	struct options options = { .bytes = 65536 };
	int option;

	opterr = 0;
	while ((option = getopt(count, words, ":b:dj")) != -1) {
		if (option == ':')
			fail(EXIT_USAGE, "-%c wants an argument\n%s", optopt, usage);
		if (option == '?')
			fail(EXIT_USAGE, "there is no option -%c\n%s", optopt, usage);
		if (option == 'b')
			options.bytes = bytes_of(optarg);
		options.direct |= option == 'd';
		options.json |= option == 'j';
	}
	if (count - optind != 3)
		fail(EXIT_USAGE, "a way and two files, please\n%s", usage);
	options.way = words[optind];
	options.from = words[optind + 1];
	options.to = words[optind + 2];
	refuse_contradictions(&options);
	return options;
}

/* ---- the files ---- */

/* A file that is copied onto itself would be empty before it is read. */
static void refuse_same(const struct options *options, const struct stat *from)
{
	struct stat to;

	if (stat(options->to, &to) == 0 && to.st_dev == from->st_dev && to.st_ino == from->st_ino)
		fail(EXIT_FAILURE, "%s and %s are the same file", options->from, options->to);
}

static struct copy open_both(const struct options *options)
{
	int flags = options->direct ? O_DIRECT : 0;
	struct copy copy = { .from = open(options->from, O_RDONLY | flags) };
	struct stat status;
	void *buffer;

	if (copy.from < 0 || fstat(copy.from, &status) < 0)
		fail_at("opened", options->from);
	if (!S_ISREG(status.st_mode))
		fail(EXIT_FAILURE, "%s is not a file", options->from);
	refuse_same(options, &status);
	copy.size = status.st_size;
	if (options->direct && copy.size % SECTOR)
		fail(EXIT_FAILURE, "%s has %" PRIu64 " bytes: with -d, whole sectors only",
		     options->from, copy.size);
	copy.to = open(options->to, O_RDWR | O_CREAT | O_TRUNC | flags, 0644);
	if (copy.to < 0)
		fail_at("written", options->to);
	if (posix_memalign(&buffer, PAGE_SIZE, options->bytes) != 0)
		fail(EXIT_FAILURE, "there is not enough memory for a buffer of %u bytes",
		     options->bytes);
	copy.buffer = buffer;
	if (is_way(options, "read"))
		memset(buffer, 1, options->bytes);
	return copy;
}

/* ---- copies ---- */

/* `length` bytes of the buffer or of a map. */
static void write_all(const struct options *options, struct copy *copy, const uint8_t *from,
		      uint32_t length)
{
	ssize_t done = write(copy->to, from, length);

	copy->calls++;
	if (done < 0)
		fail_at("written", options->to);
	if ((uint32_t)done != length)
		fail(EXIT_FAILURE, "%s: only %zd of %u bytes were written", options->to, done,
		     length);
}

static void *map(const struct options *options, struct copy *copy, bool target, uint64_t offset,
		 uint32_t length)
{
	void *pages = mmap(NULL, length, target ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
			   target ? copy->to : copy->from, offset);

	copy->calls++;
	if (pages == MAP_FAILED)
		fail_at("mapped", target ? options->to : options->from);
	return pages;
}

static void unmap(struct copy *copy, void *pages, uint32_t length)
{
	copy->calls++;
	munmap(pages, length);
}

static void copy_by_read(const struct options *options, struct copy *copy, uint64_t offset,
			 uint32_t length)
{
	ssize_t done = read(copy->from, copy->buffer, length);

	copy->calls++;
	if (done < 0)
		fail_at("read", options->from);
	if ((uint32_t)done != length)
		fail(EXIT_FAILURE, "%s: only %zd of %u bytes were read at %" PRIu64, options->from,
		     done, length, offset);
	write_all(options, copy, copy->buffer, length);
}

static void copy_by_map(const struct options *options, struct copy *copy, uint64_t offset,
			uint32_t length)
{
	uint8_t *from = map(options, copy, false, offset, length);

	if (is_way(options, "both")) {
		uint8_t *to = map(options, copy, true, offset, length);

		memcpy(to, from, length);
		unmap(copy, to, length);
	} else {
		write_all(options, copy, from, length);
	}
	unmap(copy, from, length);
}

static void copy_all(const struct options *options, struct copy *copy)
{
	if (is_way(options, "both")) {
		copy->calls++;
		if (ftruncate(copy->to, copy->size) < 0)
			fail_at("made longer", options->to);
	}
	for (uint64_t offset = 0; offset < copy->size; offset += options->bytes) {
		uint64_t left = copy->size - offset;
		uint32_t length = left < options->bytes ? left : options->bytes;

		if (is_way(options, "read"))
			copy_by_read(options, copy, offset, length);
		else
			copy_by_map(options, copy, offset, length);
	}
	copy->calls++;
	if (fsync(copy->to) < 0)
		fail_at("written", options->to);
}

/* ---- comparing, and the report ---- */

static void compare(const struct options *options)
{
	static uint8_t one[PAGE_SIZE], other[PAGE_SIZE];
	int from = open(options->from, O_RDONLY), to = open(options->to, O_RDONLY);
	uint64_t offset = 0;
	ssize_t length;

	if (from < 0 || to < 0)
		fail_at("opened", from < 0 ? options->from : options->to);
	while ((length = read(from, one, PAGE_SIZE)) > 0) {
		if (read(to, other, PAGE_SIZE) != length || memcmp(one, other, length) != 0)
			fail(EXIT_FAILURE, "%s differs from %s after offset %" PRIu64, options->to,
			     options->from, offset);
		offset += length;
	}
	if (length < 0 || read(to, other, PAGE_SIZE) != 0)
		fail(EXIT_FAILURE, "%s is longer than %s", options->to, options->from);
	close(from);
	close(to);
}

static void report(const struct options *options, const struct copy *copy)
{
	uint64_t us = copy->ns / 1000, rate = copy->size / (us ? us : 1);

	if (options->json)
		printf("{\"way\": \"%s\", \"buffer\": %u, \"direct\": %s, \"bytes\": %" PRIu64
		       ", \"calls\": %" PRIu64 ", \"ns\": %" PRIu64 "}\n",
		       options->way, options->bytes, options->direct ? "true" : "false", copy->size,
		       copy->calls, copy->ns);
	else
		printf("%s, %u bytes at a time%s: %" PRIu64 " bytes, %" PRIu64
		       " system calls, %" PRIu64 " us, %" PRIu64 " MB/s\n",
		       options->way, options->bytes, options->direct ? ", direct" : "", copy->size,
		       copy->calls, us, rate);
}

int main(int count, char **words)
{
	struct options options = read_options(count, words);

	if (is_way(&options, "compare")) {
		compare(&options);
		return 0;
	}
	struct copy copy = open_both(&options);

	instructions_mark();
	uint64_t start = now_ns();

	copy_all(&options, &copy);
	copy.ns = now_ns() - start;
	instructions_mark();
	report(&options, &copy);
	return 0;
}
