/*
 * seekrw: times random reads and writes of a file or a block device. A Linux program, linked
 * statically.
 *
 *	options -> open, size, buffers -> clock -> COUNT times: offset, read or write -> clock
 *
 * - The same seed, size and length give the same offsets, on every machine and for every mix of
 *   reads and writes (kernel/lib/random.h).
 * - Between the two readings of the clock it makes the operations' system calls and reads the
 *   clock, and nothing else that can be done before or after; -c and progress cost a little.
 * - What the device was asked for, and latencies, are counted as labs/storage/measuring.h says.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kernel/lib/random.h"
#include "labs/storage/stamp.h"
#include "labs/storage/measuring.h"
#include "user/seekrw_options.h"

#define PAGE_SIZE   4096u
#define WRITES_XOR  0x77726974657321u /* another stream of random numbers for the same seed */
#define CONTENT_XOR 0x636f6e74656e74u

struct target {
	int descriptor;
	uint64_t size;
	uint64_t device; /* its number: of the file's file system, or of the device itself */
	uint8_t *input;	 /* both of one operation's length, and aligned for direct I/O */
	uint8_t *output;
};

struct result {
	uint64_t reads, writes, wrong, ns;
	struct requests requests;
	struct latencies latencies;
};

/* --- the file --- */

/* A block device that is mounted refuses O_EXCL, in Linux as here. */
static int open_file(const struct options *options, struct stat *status)
{
	bool writes = options->write_percent > 0;
	int flags = (writes ? O_RDWR : O_RDONLY) | (options->direct ? O_DIRECT : 0);
	int descriptor = -1;

	if (stat(options->file, status) == 0)
		descriptor = open(options->file, flags | (S_ISBLK(status->st_mode) ? O_EXCL : 0));
	if (descriptor >= 0)
		return descriptor;
	if (errno == EBUSY)
		fail(EXIT_FAILURE, "%s is mounted or otherwise in use; unmount it first",
		     options->file);
	if (errno == EINVAL && options->direct)
		fail(EXIT_FAILURE, "%s: its file system has no direct I/O; go without -d",
		     options->file);
	fail(EXIT_FAILURE, "%s cannot be opened for %s: %s", options->file,
	     writes ? "reading and writing" : "reading", strerror(errno));
}

/* EXERCISE S6 (seekrw), part 1, what is measured. size_of: the size in bytes of an open file or
 * block device, whose stat is in *status; of anything else: "FILE is neither a file nor a block
 * device", by fail(EXIT_FAILURE, ...). A block device's st_size is 0: the kernel tells its size to
 * one of the requests of ioctl(2) in <sys/mount.h>. A disk may have more than 2^32 sectors.
 *
 * make_buffer: memory for one operation, of its own for each call, which stays; or fail. Direct I/O
 * moves data between the device and this memory itself, in sectors that may have up to PAGE_SIZE
 * bytes: it is aligned accordingly. */
/* SOLUTION S6 { */
static uint64_t size_of(const char *file, int descriptor, const struct stat *status)
{
	uint64_t size;

	if (S_ISREG(status->st_mode))
		return status->st_size;
	if (!S_ISBLK(status->st_mode))
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
/* } SOLUTION S6 */

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
	struct stat status;
	struct target target = { .descriptor = open_file(options, &status) };

	target.size = size_of(options->file, target.descriptor, &status);
	target.device = S_ISBLK(status.st_mode) ? status.st_rdev : status.st_dev;
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
	fprintf(stderr, "seekrw: %s: the sector at offset %" PRIu64 " ", options->file, offset);
	if (stamp->magic != STAMP_MAGIC)
		fprintf(stderr, "carries no stamp\n");
	else if (stamp->drive != (uint64_t)options->drive || stamp->offset != offset)
		fprintf(stderr, "is that of offset %" PRIu64 " of drive %c\n", stamp->offset,
			stamp->drive >= 'a' && stamp->drive <= 'z' ? (char)stamp->drive : '?');
	else
		fprintf(stderr, "is damaged after its stamp\n");
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
	if (done < 0 && errno == EINVAL && options->direct)
		fail(EXIT_FAILURE,
		     "%s: direct I/O at offset %" PRIu64 ": its sectors are longer than %" PRIu64
		     " bytes? Try -l 4096",
		     options->file, offset, options->length);
	if (done < 0)
		fail(EXIT_FAILURE, "%s: %s at offset %" PRIu64 ": %s", options->file, what, offset,
		     strerror(errno));
	if ((uint64_t)done != options->length)
		fail(EXIT_FAILURE, "%s: %s at offset %" PRIu64 ": only %zd of %" PRIu64 " bytes",
		     options->file, what, offset, done, options->length);
}

/* Maps the pages of one operation and copies: 2 TB are more than 32 bits of addresses. */
static ssize_t move_mapped(const struct options *options, const struct target *target,
			   uint64_t offset, bool writes)
{
	size_t skip = offset % PAGE_SIZE, length = skip + options->length;
	uint8_t *pages = mmap(NULL, length, writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
			      target->descriptor, offset - skip);

	if (pages == MAP_FAILED)
		return -1;
	if (writes)
		memcpy(pages + skip, target->output, options->length);
	else
		memcpy(target->input, pages + skip, options->length);
	return munmap(pages, length) < 0 ? -1 : (ssize_t)options->length;
}

static ssize_t move(const struct options *options, const struct target *target, uint64_t offset,
		    bool writes)
{
	if (options->map)
		return move_mapped(options, target, offset, writes);
	return writes ? pwrite(target->descriptor, target->output, options->length, offset)
		      : pread(target->descriptor, target->input, options->length, offset);
}

/* On a terminal only, a hundred times at most. */
static void show_progress(const struct options *options, uint64_t done, bool is_terminal)
{
	if (is_terminal && done * 100 / options->count != (done + 1) * 100 / options->count)
		fprintf(stderr, "\r%3u %%%s", (unsigned)((done + 1) * 100 / options->count),
			done + 1 < options->count ? "" : "\r     \r");
}

/* EXERCISE S6, part 2, which offsets. next_offset: a multiple of the length, so that the operation
 * ends within the target. Every such place is as likely as any other, also in 2 TB, and the numbers
 * are those of `random` alone (kernel/lib/random.h): labs/storage/workload.py expects the very
 * same.
 *
 * Part 3, the timed loop. operate: one operation. Stamps are written (-c) before it, and checked
 * after it; its latency has neither. Each wrong sector counts, and the first one of the whole run
 * is described. An operation that fails, or moves fewer bytes, does not count: require_whole, with
 * "reading" or "writing". Counts it in *result.
 *
 * measure: COUNT operations, and show_progress after each, which is for a terminal as the standard
 * error. With -w PERCENT a second stream of random numbers, of the seed ^ WRITES_XOR, draws one
 * below 100 for each operation (random_below): less than PERCENT means that it writes. So the
 * offsets are the same for every mix. result->ns is the time of all operations, with next to
 * nothing else in it: what opens, allocates or asks for counters is done before the first reading
 * of the clock, or after the last. result->requests is what the device was asked for meanwhile. */
/* SOLUTION S6 { */
static uint64_t next_offset(const struct options *options, const struct target *target,
			    struct random *random)
{
	return random_below(random, target->size / options->length) * options->length;
}

static void operate(const struct options *options, const struct target *target, uint64_t offset,
		    bool writes, struct result *result)
{
	if (writes && options->check)
		write_stamps(options, target->output, offset);
	uint64_t start = now_ns();
	ssize_t done = move(options, target, offset, writes);

	latency_count(&result->latencies, now_ns() - start);
	require_whole(options, writes ? "writing" : "reading", offset, done);
	*(writes ? &result->writes : &result->reads) += 1;
	if (!writes && options->check)
		result->wrong += wrong_stamps(options, target->input, offset, result->wrong == 0);
}

static void measure(const struct options *options, const struct target *target,
		    struct result *result)
{
	struct random offsets = { options->seed }, writes = { options->seed ^ WRITES_XOR };
	struct requests before = requests_of(target->device);
	bool is_terminal = isatty(STDERR_FILENO);
	uint64_t start = now_ns();

	for (uint64_t i = 0; i < options->count; i++) {
		uint64_t offset = next_offset(options, target, &offsets);
		bool is_write = options->write_percent > 0 &&
				random_below(&writes, 100) < options->write_percent;

		operate(options, target, offset, is_write, result);
		show_progress(options, i, is_terminal);
	}
	result->ns = now_ns() - start;
	result->requests = requests_since(target->device, &before);
}
/* } SOLUTION S6 */

/* --- the report --- */

static const unsigned per_mille[] = { 500, 900, 990, 999 };

/* The name between quotes, as JSON wants it. */
static void print_quoted(const char *text)
{
	for (; *text; text++)
		printf(*text == '"' || *text == '\\' ? "\\%c"
		       : (uint8_t)*text < ' '	     ? "\\u%04x"
						     : "%c",
		       (uint8_t)*text);
}

static void report_json(const struct options *options, const struct target *target,
			const struct result *result)
{
	const struct requests *requests = &result->requests;

	printf("{\"file\": \"");
	print_quoted(options->file);
	printf("\", \"size\": %" PRIu64 ", \"length\": %" PRIu64 ", \"seed\": %" PRIu64
	       ", \"direct\": %s, \"mmap\": %s, \"reads\": %" PRIu64 ", \"writes\": %" PRIu64
	       ", \"wrong\": %" PRIu64 ", \"ns\": %" PRIu64 ", \"percentiles_ns\": {",
	       target->size, options->length, options->seed, options->direct ? "true" : "false",
	       options->map ? "true" : "false", result->reads, result->writes, result->wrong,
	       result->ns);
	for (unsigned i = 0; i < sizeof(per_mille) / sizeof(per_mille[0]); i++)
		printf("\"%u.%u\": %" PRIu64 ", ", per_mille[i] / 10, per_mille[i] % 10,
		       latency_percentile(&result->latencies, per_mille[i]));
	printf("\"100.0\": %" PRIu64 "}, \"requests\": ", result->latencies.longest_ns);
	if (requests->is_known)
		printf("{\"reads\": %" PRIu64 ", \"sectors_read\": %" PRIu64
		       ", \"writes\": %" PRIu64 ", \"sectors_written\": %" PRIu64 "}}\n",
		       requests->reads, requests->sectors_read, requests->writes,
		       requests->sectors_written);
	else
		printf("null}\n");
}

/* EXERCISE S6, part 4, the report. print_ratio: "WHAT 1.23", events for each `of`, rounded to the
 * nearest hundredth; 0.00 if there is nothing to divide by.
 *
 * print_time: the first line, which is that of the seekrw of 2010, and ends with a newline:
 * "real time: 1 minutes 2 seconds 30 usec". */
/* SOLUTION S6 { */
static void print_ratio(const char *what, uint64_t events, uint64_t of)
{
	uint64_t hundredths = of ? (events * 100 + of / 2) / of : 0;

	printf("%s %" PRIu64 ".%02" PRIu64, what, hundredths / 100, hundredths % 100);
}

static void print_time(uint64_t ns)
{
	uint64_t us = ns / 1000;

	printf("real time: %" PRIu64 " minutes %" PRIu64 " seconds %" PRIu64 " usec\n",
	       us / 60000000, us / 1000000 % 60, us % 1000000);
}
/* } SOLUTION S6 */

static void report(const struct options *options, const struct result *result)
{
	const struct requests *requests = &result->requests;
	uint64_t us = result->ns / 1000, all = requests->reads + requests->writes;

	print_time(result->ns);
	printf("%" PRIu64 " reads and %" PRIu64 " writes of %" PRIu64 " bytes, %s", result->reads,
	       result->writes, options->length,
	       options->direct ? "direct"
	       : options->map  ? "mapped"
			       : "through the page cache");
	print_ratio("; operations a second:", options->count * 1000000, us ? us : 1);
	printf("\nlatency in usec, this many operations took no longer:");
	for (unsigned i = 0; i < sizeof(per_mille) / sizeof(per_mille[0]); i++)
		printf(" %u.%u %%: %" PRIu64 ",", per_mille[i] / 10, per_mille[i] % 10,
		       latency_percentile(&result->latencies, per_mille[i]) / 1000);
	printf(" all: %" PRIu64 "\n", result->latencies.longest_ns / 1000);
	if (requests->is_known) {
		print_ratio("requests an operation:", all, options->count);
		print_ratio("; sectors a request:",
			    requests->sectors_read + requests->sectors_written, all);
		printf("\n");
	}
	if (options->check)
		printf("wrong stamps: %" PRIu64 "\n", result->wrong);
}

int main(int count, char **arguments)
{
	static struct result result;
	struct options options = read_options(count, arguments);
	struct target target = open_target(&options);

	measure(&options, &target, &result);
	if (options.json)
		report_json(&options, &target, &result);
	else
		report(&options, &result);
	return result.wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
