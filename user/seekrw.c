/*
 * seekrw: times random reads and writes of a file or a block device. A Linux program, linked
 * statically.
 *
 * The offsets are those of the kernel's `measure` for the same seed and size (kernel/lib/random.h).
 * It makes few system calls, so that a small kernel runs it too; what an operation costs besides
 * its own system call is kept out of the timed loop where that can be done.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kernel/lib/random.h"
#include "labs/storage/stamp.h"

#define SECTOR_SIZE   512u
#define PAGE_SIZE     4096u
#define LENGTH_MAX    (1u << 30)
#define COUNT_MAX     100000000u
#define NS_PER_SECOND 1000000000u
#define EXIT_USAGE    2
#define WRITES_XOR    0x77726974657321u /* another stream of random numbers for the same seed */
#define CONTENT_XOR   0x636f6e74656e74u

static const char usage[] =
    "usage: seekrw -f FILE [-a COUNT] [-l LENGTH] [-s SEED] [-r | -w PERCENT]\n"
    "              [-d] [-c] [-D LETTER] [-q]\n"
    "  -f FILE     a file, or a block device\n"
    "  -a COUNT    operations (1000)\n"
    "  -l LENGTH   bytes an operation; offsets are multiples of it (512)\n"
    "  -s SEED     which random numbers (1)\n"
    "  -r          reads only (so it is without -w, too)\n"
    "  -w PERCENT  so many of a hundred operations write; this DESTROYS what is in FILE\n"
    "  -d          past the page cache (O_DIRECT)\n"
    "  -c          check the stamp of each sector that is read, and write stamps\n"
    "  -D LETTER   the drive that the stamps name (b)\n"
    "  -q          only the line for programs\n";

struct options {
	const char *file;
	uint64_t count, length, seed, write_percent;
	bool read_only, direct, check, quiet;
	char drive;
};

struct target {
	int descriptor;
	uint64_t size;
	uint8_t *input; /* both of one operation's length, and aligned for direct I/O */
	uint8_t *output;
};

struct result {
	uint64_t reads, writes, wrong, ns;
};

/* --- output: straight to a descriptor, without the buffers of stdio --- */

static void print_list(int descriptor, const char *format, va_list arguments)
{
	char text[PATH_MAX + 512];
	int length = vsnprintf(text, sizeof(text), format, arguments);

	if (length >= (int)sizeof(text))
		length = sizeof(text) - 1;
	for (int done = 0, part; done < length; done += part) {
		part = write(descriptor, text + done, length - done);
		if (part <= 0)
			_exit(EXIT_FAILURE);
	}
}

static void __attribute__((format(printf, 2, 3))) print(int descriptor, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_list(descriptor, format, arguments);
	va_end(arguments);
}

static void __attribute__((noreturn, format(printf, 2, 3))) fail(int status, const char *format,
								 ...)
{
	va_list arguments;

	print(STDERR_FILENO, "seekrw: ");
	va_start(arguments, format);
	print_list(STDERR_FILENO, format, arguments);
	va_end(arguments);
	print(STDERR_FILENO, "\n");
	_exit(status);
}

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
	case 'r':
		options->read_only = true;
		break;
	case 'd':
		options->direct = true;
		break;
	case 'c':
		options->check = true;
		break;
	case 'q':
		options->quiet = true;
		break;
	case ':':
		fail(EXIT_USAGE, "-%c wants an argument\n%s", optopt, usage);
	default:
		fail(EXIT_USAGE, "there is no option -%c\n%s", optopt, usage);
	}
}

static void refuse_contradictions(const struct options *options)
{
	if (!options->file)
		fail(EXIT_USAGE, "which file? Say -f FILE\n%s", usage);
	if (options->read_only && options->write_percent > 0)
		fail(EXIT_USAGE, "-r and -w exclude each other");
	if (options->direct && options->length % SECTOR_SIZE != 0)
		fail(EXIT_USAGE,
		     "with -d the length must be a multiple of %u, and %" PRIu64 " is not",
		     SECTOR_SIZE, options->length);
	if (options->check && options->length % SECTOR_SIZE != 0)
		fail(EXIT_USAGE,
		     "with -c the length must be a multiple of %u, and %" PRIu64 " is not",
		     SECTOR_SIZE, options->length);
}

static struct options read_options(int count, char **arguments)
{
	struct options options = { .count = 1000, .length = SECTOR_SIZE, .seed = 1, .drive = 'b' };
	int option;

	opterr = 0;
	while ((option = getopt(count, arguments, ":f:a:l:s:w:D:rdcq")) != -1)
		take_option(&options, option);
	if (optind < count)
		fail(EXIT_USAGE, "'%s' belongs to no option\n%s", arguments[optind], usage);
	refuse_contradictions(&options);
	return options;
}

/* --- the file --- */

static int open_file(const struct options *options)
{
	bool writes = options->write_percent > 0;
	int flags = (writes ? O_RDWR : O_RDONLY) | (options->direct ? O_DIRECT : 0);
	int descriptor = open(options->file, flags);

	if (descriptor >= 0)
		return descriptor;
	if (errno == EINVAL && options->direct)
		fail(EXIT_FAILURE, "%s: its file system has no direct I/O; go without -d",
		     options->file);
	fail(EXIT_FAILURE, "%s cannot be opened for %s: %s", options->file,
	     writes ? "reading and writing" : "reading", strerror(errno));
}

static uint64_t size_of(const char *file, int descriptor)
{
	struct stat status;
	uint64_t size;

	if (fstat(descriptor, &status) < 0)
		fail(EXIT_FAILURE, "%s: fstat: %s", file, strerror(errno));
	if (S_ISREG(status.st_mode))
		return status.st_size;
	if (!S_ISBLK(status.st_mode))
		fail(EXIT_FAILURE, "%s is neither a file nor a block device", file);
	if (ioctl(descriptor, BLKGETSIZE64, &size) < 0)
		fail(EXIT_FAILURE, "%s does not tell its size: %s", file, strerror(errno));
	return size;
}

static uint8_t *make_buffer(const struct options *options)
{
	void *buffer;

	if (posix_memalign(&buffer, PAGE_SIZE, options->length) != 0)
		fail(EXIT_FAILURE, "there is not enough memory for a buffer of %" PRIu64 " bytes",
		     options->length);
	return buffer;
}

/* Random bytes, so that what is written does not look like a hole to the file system that stores
 * it. */
static void fill(const struct options *options, uint8_t *buffer)
{
	struct random content = { options->seed ^ CONTENT_XOR };

	for (uint64_t i = 0; i < options->length; i += sizeof(uint64_t)) {
		uint64_t word = random_next(&content), left = options->length - i;

		memcpy(buffer + i, &word, left < sizeof(word) ? left : sizeof(word));
	}
}

static struct target open_target(const struct options *options)
{
	struct target target = { .descriptor = open_file(options) };

	target.size = size_of(options->file, target.descriptor);
	if (target.size < options->length)
		fail(EXIT_FAILURE, "%s has %" PRIu64 " bytes, too few for an operation of %" PRIu64,
		     options->file, target.size, options->length);
	target.input = make_buffer(options);
	fill(options, target.input); /* also brings its pages in before the clock starts */
	target.output = make_buffer(options);
	fill(options, target.output);
	return target;
}

/* --- stamps --- */

static void write_stamps(const struct options *options, uint8_t *buffer, uint64_t offset)
{
	for (uint64_t i = 0; i < options->length; i += SECTOR_SIZE)
		stamp_fill((struct stamped_sector *)(buffer + i), options->drive,
			   (offset + i) / SECTOR_SIZE, offset + i);
}

static void complain(const struct options *options, uint64_t offset, const struct stamp *stamp)
{
	if (stamp->magic != STAMP_MAGIC)
		print(STDERR_FILENO,
		      "seekrw: %s: the sector at offset %" PRIu64 " carries no stamp\n",
		      options->file, offset);
	else if (stamp->drive != (uint64_t)options->drive || stamp->offset != offset)
		print(STDERR_FILENO,
		      "seekrw: %s: the sector at offset %" PRIu64 " is that of offset %" PRIu64
		      " of drive %c\n",
		      options->file, offset, stamp->offset,
		      stamp->drive >= 'a' && stamp->drive <= 'z' ? (char)stamp->drive : '?');
	else
		print(STDERR_FILENO,
		      "seekrw: %s: the sector at offset %" PRIu64 " is damaged after its stamp\n",
		      options->file, offset);
}

/* Is each sector the one that belongs there? Its own LBA is believed: what maps the file decides
 * it. Counts the others, and describes the very first. */
static uint64_t wrong_stamps(const struct options *options, const uint8_t *buffer, uint64_t offset,
			     bool first)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < options->length; i += SECTOR_SIZE) {
		const struct stamped_sector *sector = (const void *)(buffer + i);
		struct stamped_sector expected;

		stamp_fill(&expected, options->drive, sector->stamp.lba, offset + i);
		if (memcmp(sector, &expected, sizeof(expected)) == 0)
			continue;
		if (wrong++ == 0 && first)
			complain(options, offset + i, &sector->stamp);
	}
	return wrong;
}

/* --- the measurement --- */

static void require_whole(const struct options *options, const char *what, uint64_t offset,
			  ssize_t done)
{
	if (done < 0)
		fail(EXIT_FAILURE, "%s: %s at offset %" PRIu64 ": %s", options->file, what, offset,
		     strerror(errno));
	if ((uint64_t)done != options->length)
		fail(EXIT_FAILURE, "%s: %s at offset %" PRIu64 ": only %zd of %" PRIu64 " bytes",
		     options->file, what, offset, done, options->length);
}

static void read_once(const struct options *options, const struct target *target, uint64_t offset,
		      struct result *result)
{
	ssize_t done = pread(target->descriptor, target->input, options->length, offset);

	require_whole(options, "reading", offset, done);
	result->reads++;
	if (options->check)
		result->wrong += wrong_stamps(options, target->input, offset, result->wrong == 0);
}

static void write_once(const struct options *options, const struct target *target, uint64_t offset,
		       struct result *result)
{
	if (options->check)
		write_stamps(options, target->output, offset);
	ssize_t done = pwrite(target->descriptor, target->output, options->length, offset);

	require_whole(options, "writing", offset, done);
	result->writes++;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_MONOTONIC, &now) < 0)
		fail(EXIT_FAILURE, "there is no clock: %s", strerror(errno));
	return (uint64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* Whether an operation writes comes from other random numbers: the offsets are the same for every
 * mix. */
static struct result measure(const struct options *options, const struct target *target)
{
	struct random offsets = { options->seed }, writes = { options->seed ^ WRITES_XOR };
	struct result result = { 0 };
	uint64_t places = target->size / options->length, start = now_ns();

	for (uint64_t i = 0; i < options->count; i++) {
		uint64_t offset = random_below(&offsets, places) * options->length;

		if (options->write_percent > 0 &&
		    random_below(&writes, 100) < options->write_percent)
			write_once(options, target, offset, &result);
		else
			read_once(options, target, offset, &result);
	}
	result.ns = now_ns() - start;
	return result;
}

/* --- the report --- */

/* For programs: one line of names and values. */
static void report_values(const struct options *options, const struct target *target,
			  const struct result *result, uint64_t rate)
{
	print(STDOUT_FILENO,
	      "seekrw ops=%" PRIu64 " reads=%" PRIu64 " writes=%" PRIu64 " bytes=%" PRIu64
	      " seconds=%" PRIu64 ".%09" PRIu64 " ops_per_s=%" PRIu64 ".%02" PRIu64
	      " wrong=%" PRIu64 " seed=%" PRIu64 " length=%" PRIu64 " size=%" PRIu64 "\n",
	      options->count, result->reads, result->writes, options->count * options->length,
	      result->ns / NS_PER_SECOND, result->ns % NS_PER_SECOND, rate / 100, rate % 100,
	      result->wrong, options->seed, options->length, target->size);
}

/* For people. */
static void report_sentence(const struct options *options, const struct result *result,
			    uint64_t rate)
{
	uint64_t ms = result->ns / 1000000;

	print(STDOUT_FILENO, "%" PRIu64 " reads and %" PRIu64 " writes of %" PRIu64 " bytes, %s, ",
	      result->reads, result->writes, options->length,
	      options->direct ? "direct" : "through the page cache");
	print(STDOUT_FILENO,
	      "in %" PRIu64 ".%03" PRIu64 " s: %" PRIu64 ".%02" PRIu64 " operations a second",
	      ms / 1000, ms % 1000, rate / 100, rate % 100);
	if (options->check)
		print(STDOUT_FILENO, ", %" PRIu64 " wrong stamps", result->wrong);
	print(STDOUT_FILENO, "\n");
}

static void report(const struct options *options, const struct target *target,
		   const struct result *result)
{
	/* Hundredths of operations a second; COUNT_MAX keeps the product below 2^64. */
	uint64_t rate = options->count * 100 * NS_PER_SECOND / (result->ns ? result->ns : 1);

	report_values(options, target, result, rate);
	if (!options->quiet)
		report_sentence(options, result, rate);
}

int main(int count, char **arguments)
{
	struct options options = read_options(count, arguments);
	struct target target = open_target(&options);
	struct result result = measure(&options, &target);

	report(&options, &target, &result);
	return result.wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
