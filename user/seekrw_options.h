/*
 * The options of seekrw (user/seekrw.c), and how it fails: one line to the standard error, with the
 * status EXIT_USAGE for wrong options.
 */
#pragma once

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "seekrw"
#include "user/fail.h"

#define SECTOR_SIZE 512u
#define LENGTH_MAX  (1u << 30)
#define COUNT_MAX   100000000u
#define EXIT_USAGE  2

static const char usage[] =
    "usage: seekrw -f FILE [-a COUNT] [-l LENGTH] [-s SEED] [-r | -w PERCENT]\n"
    "              [-d | --mmap] [-c] [-D LETTER] [-j]\n"
    "  -f FILE     a file, or a block device that is not mounted\n"
    "  -a COUNT    operations (1000)\n"
    "  -l LENGTH   bytes an operation; offsets are multiples of it (512)\n"
    "  -s SEED     which random numbers (1)\n"
    "  -r          reads only (so it is without -w, too)\n"
    "  -w PERCENT  this many of a hundred operations write; this DESTROYS what is in FILE\n"
    "  -d          past the page cache (O_DIRECT)\n"
    "  --mmap      maps the pages of each operation instead of calling read and write\n"
    "  -c          check the stamp of each sector that is read, and write stamps\n"
    "  -D LETTER   the drive that the stamps name (b)\n"
    "  -j          the result as JSON\n";

struct options {
	const char *file;
	uint64_t count, length, seed, write_percent;
	bool read_only, direct, map, check, json;
	char drive;
};

/* --- options --- */

/* The option's argument as a whole number from low to high. */
static uint64_t number(int option, const char *text, uint64_t low, uint64_t high)
{
	char *end;

	errno = 0;
	uint64_t value = strtoull(text, &end, 0);

	if (*text < '0' || *text > '9' || *end || errno || value < low || value > high)
		fail(EXIT_USAGE,
		     "-%c wants a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'", option,
		     low, high, text);
	return value;
}

static char letter(const char *text)
{
	if (text[0] < 'a' || text[0] > 'z' || text[1])
		fail(EXIT_USAGE, "-D wants the last letter of a drive's name, not '%s'", text);
	return text[0];
}

static bool *flag_of(struct options *options, int option)
{
	return option == 'r'   ? &options->read_only
	       : option == 'd' ? &options->direct
	       : option == 'm' ? &options->map
	       : option == 'c' ? &options->check
			       : &options->json;
}

static void take_option(struct options *options, int option)
{
	switch (option) {
	case 'f':
		options->file = optarg;
		break;
	case 'a':
		options->count = number(option, optarg, 1, COUNT_MAX);
		break;
	case 'l':
		options->length = number(option, optarg, 1, LENGTH_MAX);
		break;
	case 's':
		options->seed = number(option, optarg, 0, UINT64_MAX);
		break;
	case 'w':
		options->write_percent = number(option, optarg, 0, 100);
		break;
	case 'D':
		options->drive = letter(optarg);
		break;
	case ':':
		fail(EXIT_USAGE, "-%c wants an argument\n%s", optopt, usage);
	case '?':
		fail(EXIT_USAGE, "there is no option -%c\n%s", optopt, usage);
	default:
		*flag_of(options, option) = true;
	}
}

static void refuse_contradictions(const struct options *options)
{
	if (!options->file)
		fail(EXIT_USAGE, "which file? Say -f FILE\n%s", usage);
	if (options->read_only && options->write_percent > 0)
		fail(EXIT_USAGE, "-r and -w exclude each other");
	if (options->direct && options->map)
		fail(EXIT_USAGE,
		     "-d and --mmap exclude each other: pages that are mapped are cached");
	if (options->direct && options->length % SECTOR_SIZE != 0)
		fail(EXIT_USAGE,
		     "with -d the length must be a multiple of %u, and %" PRIu64 " is not",
		     SECTOR_SIZE, options->length);
	if (options->check && options->length % SECTOR_SIZE != 0)
		fail(EXIT_USAGE,
		     "with -c the length must be a multiple of %u, and %" PRIu64 " is not",
		     SECTOR_SIZE, options->length);
}

/* For getopt, the only long option is a letter like the others. */
static struct options read_options(int count, char **arguments)
{
	struct options options = { .count = 1000, .length = SECTOR_SIZE, .seed = 1, .drive = 'b' };
	static char mmap_option[] = "-m";
	int option;

	for (int i = 1; i < count; i++)
		if (strcmp(arguments[i], "--mmap") == 0)
			arguments[i] = mmap_option;
	opterr = 0;
	while ((option = getopt(count, arguments, ":f:a:l:s:w:D:rdcjm")) != -1)
		take_option(&options, option);
	if (optind < count)
		fail(EXIT_USAGE, "'%s' belongs to no option\n%s", arguments[optind], usage);
	refuse_contradictions(&options);
	return options;
}
