/*
 * pageread: reads pages of a file in the order of a list, and says how many had to come from the
 * drive. The same source runs here and on Linux (32 bits).
 *
 *	read	pread of the page's first 64 bytes
 *	mmap	the same bytes of a map of the whole file
 *	touch	as mmap, and a system call for each, that does nothing: what a hint would cost
 *
 * The list is a file of 32-bit page numbers, in the order of this machine's bytes. The first word
 * of each page must be its number. What the drive delivers is counted by /proc/diskstats, for the
 * whole machine. There is an instructions_mark before what is counted, and one after it.
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
#include <sys/syscall.h>
#include <unistd.h>

#define PROGRAM "pageread"
#include "user/fail.h"
#include "labs/storage/measuring.h"
#include "user/measure.h"

#define PAGE_SIZE    4096u
#define PIECE	     64u
#define EXIT_USAGE   2
#define CALL_FADVISE 272 /* fadvise64_64 of the i386, for the course's library */
#define RANDOM	     1	 /* POSIX_FADV_RANDOM */

#ifndef SYS_mincore /* not in the course's library */
#define SYS_mincore 218
#endif

static const char usage[] =
    "usage: pageread [-w COUNT] read|mmap|touch FILE LIST\n"
    "  -w COUNT  this many numbers of the list come first, and are not counted (0)\n"
    "FILE is a file or a block device that is not mounted; the first word of each page is its\n"
    "number. LIST has page numbers of 32 bits.\n";

struct options {
	const char *way, *file, *list;
	uint32_t warm;
};

struct target {
	int descriptor;
	uint32_t pages, count;
	uint64_t device;
	const uint32_t *list;
	const uint8_t *map; /* NULL: by pread */
	bool touches;
};

static struct options read_options(int count, char **words)
{
	struct options options = { 0 };
	int option;
	char *end;

	opterr = 0;
	while ((option = getopt(count, words, ":w:")) != -1) {
		if (option != 'w')
			fail(EXIT_USAGE,
			     option == ':' ? "-%c wants an argument\n%s"
					   : "there is no option -%c\n%s",
			     optopt, usage);
		options.warm = strtoul(optarg, &end, 0);
		if (*optarg < '0' || *optarg > '9' || *end)
			fail(EXIT_USAGE, "-w wants a whole number, not '%s'", optarg);
	}
	if (count - optind != 3)
		fail(EXIT_USAGE, "a way, a file and a list, please\n%s", usage);
	options.way = words[optind];
	options.file = words[optind + 1];
	options.list = words[optind + 2];
	if (strcmp(options.way, "read") != 0 && strcmp(options.way, "mmap") != 0 &&
	    strcmp(options.way, "touch") != 0)
		fail(EXIT_USAGE, "there is no way '%s'\n%s", options.way, usage);
	return options;
}

/* ---- the file and the list ---- */

static int open_to_read(const char *name, struct stat *status)
{
	int descriptor = open(name, O_RDONLY);

	if (descriptor < 0 || fstat(descriptor, status) < 0)
		fail(EXIT_FAILURE, "%s cannot be opened: %s", name, strerror(errno));
	return descriptor;
}

static const void *map(const char *name, int descriptor, size_t size)
{
	const void *pages = mmap(NULL, size, PROT_READ, MAP_SHARED, descriptor, 0);

	if (pages == MAP_FAILED)
		fail(EXIT_FAILURE, "%s cannot be mapped: %s", name, strerror(errno));
	return pages;
}

/* All of the list, which stays in memory. */
static void read_list(const struct options *options, struct target *target)
{
	struct stat status;
	int descriptor = open_to_read(options->list, &status);
	size_t size = status.st_size;
	uint32_t *list = malloc(size ? size : 1);

	if (!list || read(descriptor, list, size) != (ssize_t)size)
		fail(EXIT_FAILURE, "%s cannot be read: %s", options->list, strerror(errno));
	close(descriptor);
	target->list = list;
	target->count = size / sizeof(*list);
	if (target->count <= options->warm)
		fail(EXIT_FAILURE, "%s has %u numbers, and -w %u leaves none", options->list,
		     target->count, options->warm);
}

/* One page at a time: without read-ahead. */
static struct target open_target(const struct options *options)
{
	struct target target = { .touches = strcmp(options->way, "touch") == 0 };
	struct stat status;

	target.descriptor = open_to_read(options->file, &status);
	target.device = S_ISBLK(status.st_mode) ? status.st_rdev : status.st_dev;
	target.pages = lseek(target.descriptor, 0, SEEK_END) / PAGE_SIZE;
#ifdef POSIX_FADV_RANDOM
	posix_fadvise(target.descriptor, 0, 0, POSIX_FADV_RANDOM);
#else
	syscall(CALL_FADVISE, target.descriptor, 0, 0, 0, 0, RANDOM);
#endif
	read_list(options, &target);
	for (uint32_t i = 0; i < target.count; i++)
		if (target.list[i] >= target.pages)
			fail(EXIT_FAILURE, "%s: page %u, but %s has %u", options->list,
			     target.list[i], options->file, target.pages);
	if (strcmp(options->way, "read") != 0)
		target.map =
		    map(options->file, target.descriptor, (size_t)target.pages * PAGE_SIZE);
	return target;
}

/* ---- reading ---- */

static void read_page(const struct options *options, const struct target *target, uint32_t page)
{
	uint8_t piece[PIECE];
	uint32_t number;

	if (target->map)
		memcpy(piece, target->map + (size_t)page * PAGE_SIZE, PIECE);
	else if (pread(target->descriptor, piece, PIECE, (off_t)page * PAGE_SIZE) != PIECE)
		fail(EXIT_FAILURE, "%s: page %u: %s", options->file, page, strerror(errno));
	if (target->touches)
		syscall(SYS_getppid);
	memcpy(&number, piece, sizeof(number));
	if (number != page)
		fail(EXIT_FAILURE, "%s: page %u says that it is %u", options->file, page, number);
}

/* How many pages of the map are in memory; 0 without a map. */
static uint32_t pages_kept(const struct options *options, const struct target *target)
{
	uint8_t *there = target->map ? malloc(target->pages) : NULL;
	uint32_t kept = 0;

	if (!target->map)
		return 0;
	if (!there ||
	    syscall(SYS_mincore, target->map, (size_t)target->pages * PAGE_SIZE, there) != 0)
		fail(EXIT_FAILURE, "%s: mincore: %s", options->file, strerror(errno));
	for (uint32_t i = 0; i < target->pages; i++)
		kept += there[i] & 1;
	free(there);
	return kept;
}

int main(int count, char **words)
{
	struct options options = read_options(count, words);
	struct target target = open_target(&options);

	for (uint32_t i = 0; i < options.warm; i++)
		read_page(&options, &target, target.list[i]);
	struct requests before = requests_of(target.device);

	instructions_mark();
	for (uint32_t i = options.warm; i < target.count; i++)
		read_page(&options, &target, target.list[i]);
	instructions_mark();
	struct requests requests = requests_since(target.device, &before);

	uint32_t kept = pages_kept(&options, &target);

	printf("{\"way\": \"%s\", \"reads\": %u, \"requests\": %" PRIu64 ", \"sectors\": %" PRIu64
	       ", \"kept\": %u}\n",
	       options.way, target.count - options.warm, requests.reads, requests.sectors_read,
	       kept);
	return 0;
}
