/*
 * dirtycost: the cost of knowing which pages of a file a program has changed. The same source runs
 * here and on Linux.
 *
 * It changes some pages of a file, again and again, and writes the file back after every few
 * rounds. The first change of a mapped page after each write-back is a fault: that is how the
 * kernel learns of it. write() needs no fault, and a call a change.
 *
 *	round		 1		 2		 3		 4
 *	change		|xxxx|		|xxxx|		|xxxx|		|xxxx|
 *	write back, -n 2		      |sync|			      |sync|
 *
 * Each | of the drawing is an instructions_mark: two around the changes of each round, and two
 * around each write-back. All pages are mapped, or in the cache, before the first one.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROGRAM "dirtycost"
#include "user/fail.h"
#include "user/measure.h"

#define PAGE_SIZE  4096u
#define PIECE	   64u	  /* bytes of a change */
#define PAGES_MAX  32768u /* so that products of two of them fit */
#define ROUNDS_MAX 1000u
#define EXIT_USAGE 2

#ifndef SYS_msync /* not in the course's library */
#define SYS_msync 144
#endif

static const char usage[] =
    "usage: dirtycost [-p PAGES] [-t PERCENT] [-w CHANGES] [-r ROUNDS] [-n EVERY] mmap|write FILE\n"
    "  -p PAGES    of the file (1024)\n"
    "  -t PERCENT  this many of them are changed in a round, evenly spread (100)\n"
    "  -w CHANGES  64 bytes each, to each of these pages (1)\n"
    "  -r ROUNDS   (4)\n"
    "  -n EVERY    write back after this many rounds; 0: only at the end (1)\n"
    "FILE is made, or written over: what it had before is lost.\n";

struct options {
	bool map;
	const char *file;
	uint32_t pages, percent, changes, rounds, every;
};

struct target {
	int descriptor;
	uint8_t *pages; /* NULL: by write */
};

/* ---- options ---- */

static uint32_t number(int option, uint32_t low, uint32_t high)
{
	char *end;
	unsigned long value = strtoul(optarg, &end, 0);

	if (*optarg < '0' || *optarg > '9' || *end || value < low || value > high)
		fail(EXIT_USAGE, "-%c wants a whole number from %u to %u, not '%s'", option, low,
		     high, optarg);
	return value;
}

static void take_option(struct options *options, int option)
{
	if (option == 'p')
		options->pages = number(option, 1, PAGES_MAX);
	else if (option == 't')
		options->percent = number(option, 0, 100);
	else if (option == 'w')
		options->changes = number(option, 1, PAGE_SIZE / PIECE);
	else if (option == 'r')
		options->rounds = number(option, 1, ROUNDS_MAX);
	else if (option == 'n')
		options->every = number(option, 0, ROUNDS_MAX);
	else
		fail(EXIT_USAGE,
		     option == ':' ? "-%c wants an argument\n%s" : "there is no option -%c\n%s",
		     optopt, usage);
}

static struct options read_options(int count, char **words)
{
	struct options options = { true, NULL, 1024, 100, 1, 4, 1 };
	int option;

	opterr = 0;
	while ((option = getopt(count, words, ":p:t:w:r:n:")) != -1)
		take_option(&options, option);
	if (count - optind != 2)
		fail(EXIT_USAGE, "a way and a file, please\n%s", usage);
	options.map = strcmp(words[optind], "mmap") == 0;
	if (!options.map && strcmp(words[optind], "write") != 0)
		fail(EXIT_USAGE, "there is no way '%s'\n%s", words[optind], usage);
	options.file = words[optind + 1];
	return options;
}

/* ---- the file ---- */

static void must(const struct options *options, bool is_good, const char *what)
{
	if (!is_good)
		fail(EXIT_FAILURE, "%s: %s: %s", options->file, what, strerror(errno));
}

/* Its pages are on the disk, and in the cache; those of a map have been read. */
static struct target open_target(const struct options *options)
{
	static uint8_t page[PAGE_SIZE] = { 1 };
	struct target target = { open(options->file, O_RDWR | O_CREAT | O_TRUNC, 0644), NULL };
	size_t size = (size_t)options->pages * PAGE_SIZE;

	must(options, target.descriptor >= 0, "open");
	for (uint32_t i = 0; i < options->pages; i++)
		must(options, write(target.descriptor, page, PAGE_SIZE) == PAGE_SIZE, "write");
	must(options, fsync(target.descriptor) == 0, "fsync");
	if (!options->map)
		return target;
	target.pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, target.descriptor, 0);
	must(options, target.pages != MAP_FAILED, "mmap");
	for (size_t i = 0; i < size; i += PAGE_SIZE)
		must(options, *(volatile uint8_t *)(target.pages + i) == 1, "its contents");
	return target;
}

/* ---- rounds ---- */

/* One page: the pieces are one after another. */
static void change_page(const struct options *options, const struct target *target, uint32_t page,
			uint32_t round)
{
	uint32_t offset = page * PAGE_SIZE;
	uint8_t piece[PIECE];

	memset(piece, (int)round, PIECE);
	piece[0] = 1;
	for (uint32_t i = 0; i < options->changes; i++, offset += PIECE) {
		if (target->pages)
			memcpy(target->pages + offset, piece, PIECE);
		else
			must(options, pwrite(target->descriptor, piece, PIECE, offset) == PIECE,
			     "write");
	}
}

/* This many of a hundred pages, as evenly spread as can be. Returns how many of all. */
static uint32_t change(const struct options *options, const struct target *target, uint32_t round)
{
	uint32_t changed = options->pages * options->percent / 100;

	for (uint32_t i = 0; i < changed; i++)
		change_page(options, target, i * options->pages / changed, round);
	return changed;
}

static void write_back(const struct options *options, const struct target *target)
{
	if (target->pages)
		must(options,
		     syscall(SYS_msync, target->pages, (size_t)options->pages * PAGE_SIZE,
			     MS_SYNC) == 0,
		     "msync");
	else
		must(options, fsync(target->descriptor) == 0, "fsync");
}

int main(int count, char **words)
{
	struct options options = read_options(count, words);
	struct target target = open_target(&options);
	uint32_t changed = 0, written = 0;

	for (uint32_t round = 1; round <= options.rounds; round++) {
		instructions_mark();
		changed = change(&options, &target, round);
		instructions_mark();
		if (options.every ? round % options.every : round < options.rounds)
			continue;
		instructions_mark();
		write_back(&options, &target);
		instructions_mark();
		written++;
	}
	printf("{\"way\": \"%s\", \"pages\": %u, \"percent\": %u, \"changes\": %u, \"rounds\": %u, "
	       "\"every\": %u, \"changed\": %u, \"written\": %u}\n",
	       options.map ? "mmap" : "write", options.pages, options.percent, options.changes,
	       options.rounds, options.every, changed, written);
	return 0;
}
