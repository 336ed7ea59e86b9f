/*
 * probe [SEED]: 40 system calls with pointers that a kernel must not trust. Prints a line for each
 * (KTAP); the seed chooses their order and the addresses. On Linux all are ok.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/testing/places.h"

#define SCRATCH	    "/tmp/probe"
#define EDGE_BYTES  256 /* before the edge, that the probes use */
#define BUFFER_BYTE 0x5a

/* Arguments that stand for something: a place, or one of what follows. Others are themselves. */
#define CODE(what, extra) (0x6a000000 + ((what) << 16) + (extra))
#define AT(place)	  CODE(place, 0)
#define EDGE(bytes)	  CODE(PLACES, bytes) /* this many bytes before the edge; no NUL there */
#define EDGE_PATH	  CODE(PLACES + 1, 0) /* "/", its NUL the last byte before the edge */
#define OUTPUT		  CODE(PLACES + 2, 0) /* a descriptor to write to, of an empty file */
#define INPUT		  CODE(PLACES + 3, 0) /* a descriptor to read from: this program */
#define BUFFER		  CODE(PLACES + 4, 0)
#define PROGRAM		  CODE(PLACES + 5, 0) /* this program's path */
#define VECTOR		  CODE(PLACES + 6, 0) /* 8 bytes of BUFFER, then 8 in the kernel */
#define WORDS		  CODE(PLACES + 7, 0) /* arguments: PROGRAM, one in the kernel, NULL */
#define IS_CODE(word)	  ((unsigned long)(word) >> 24 == 0x6a)

enum expected {
	FAULT,	 /* EFAULT */
	REFUSAL, /* EFAULT or EINVAL */
	PART,	 /* what is before the bad byte, or EFAULT */
	RESULT,	 /* exactly the value */
	NOTHING, /* 0, or EFAULT */
};

static const struct probe {
	const char *name;
	enum expected expected;
	long value;
	long number;
	long arguments[4];
} probes[] = {
	{ "write from NULL", FAULT, 0, SYS_write, { OUTPUT, 0, 64 } },
	{ "write from page 0", FAULT, 0, SYS_write, { OUTPUT, AT(IN_NULL_PAGE), 64 } },
	{ "write from a hole", FAULT, 0, SYS_write, { OUTPUT, AT(IN_HOLE), 64 } },
	{ "write from the border", FAULT, 0, SYS_write, { OUTPUT, AT(AT_BORDER), 1 } },
	{ "write from the kernel", FAULT, 0, SYS_write, { OUTPUT, AT(IN_KERNEL), 64 } },
	{ "write that wraps", FAULT, 0, SYS_write, { OUTPUT, AT(AT_TOP), 0x2000 } },
	{ "write over the edge", PART, 64, SYS_write, { OUTPUT, EDGE(64), 128 } },
	{ "write up to the edge", RESULT, 64, SYS_write, { OUTPUT, EDGE(64), 64 } },
	{ "write of 4 GiB", REFUSAL, 0, SYS_write, { OUTPUT, AT(IN_KERNEL), -1 } },
	{ "write of nothing", NOTHING, 0, SYS_write, { OUTPUT, AT(IN_KERNEL), 0 } },
	{ "read to NULL", FAULT, 0, SYS_read, { INPUT, 0, 64 } },
	{ "read to a hole", FAULT, 0, SYS_read, { INPUT, AT(IN_HOLE), 64 } },
	{ "read to the border", FAULT, 0, SYS_read, { INPUT, AT(AT_BORDER), 1 } },
	{ "read to the kernel", FAULT, 0, SYS_read, { INPUT, AT(IN_KERNEL), 64 } },
	{ "read to a read-only page", FAULT, 0, SYS_read, { INPUT, AT(IN_READ_ONLY), 64 } },
	{ "read over the edge", PART, 16, SYS_read, { INPUT, EDGE(16), 64 } },
	{ "read up to the edge", RESULT, 64, SYS_read, { INPUT, EDGE(64), 64 } },
	{ "pread to the kernel", FAULT, 0, SYS_pread64, { INPUT, AT(IN_KERNEL), 64, 0 } },
	{ "open a path in the kernel", FAULT, 0, SYS_open, { AT(IN_KERNEL), O_RDONLY } },
	{ "open NULL", FAULT, 0, SYS_open, { 0, O_RDONLY } },
	{ "open a path without end", FAULT, 0, SYS_open, { EDGE(16), O_RDONLY } },
	{ "a path that ends at the edge", RESULT, 0, SYS_access, { EDGE_PATH, F_OK } },
	{ "access a path in a hole", FAULT, 0, SYS_access, { AT(IN_HOLE), F_OK } },
	{ "writev, list in the kernel", FAULT, 0, SYS_writev, { OUTPUT, AT(IN_KERNEL), 2 } },
	{ "writev, list over the edge", FAULT, 0, SYS_writev, { OUTPUT, EDGE(8), 2 } },
	{ "writev, second part bad", PART, 8, SYS_writev, { OUTPUT, VECTOR, 2 } },
	{ "readv, second part bad", PART, 8, SYS_readv, { INPUT, VECTOR, 2 } },
	{ "fstat to the kernel", FAULT, 0, SYS_fstat64, { INPUT, AT(IN_KERNEL) } },
	{ "fstat over the edge", FAULT, 0, SYS_fstat64, { INPUT, EDGE(32) } },
	{ "stat to a read-only page", FAULT, 0, SYS_stat64, { PROGRAM, AT(IN_READ_ONLY) } },
	{ "stat a path in the kernel", FAULT, 0, SYS_stat64, { AT(IN_KERNEL), BUFFER } },
	{ "getcwd to the kernel", FAULT, 0, SYS_getcwd, { AT(IN_KERNEL), 64 } },
	{ "getcwd over the edge", FAULT, 0, SYS_getcwd, { EDGE(1), 64 } },
	{ "clock_gettime to the kernel", FAULT, 0, SYS_clock_gettime, { 1, AT(IN_KERNEL) } },
	{ "uname over the edge", FAULT, 0, SYS_uname, { EDGE(100) } },
	{ "set_thread_area in a hole", FAULT, 0, SYS_set_thread_area, { AT(IN_HOLE) } },
	{ "execve a path in the kernel", FAULT, 0, SYS_execve, { AT(IN_KERNEL), 0, 0 } },
	{ "execve, list in the kernel", FAULT, 0, SYS_execve, { PROGRAM, AT(IN_KERNEL), 0 } },
	{ "execve, word in the kernel", FAULT, 0, SYS_execve, { PROGRAM, WORDS, 0 } },
	{ "execve, list without end", FAULT, 0, SYS_execve, { PROGRAM, EDGE(8), 0 } },
};

#define COUNT (sizeof(probes) / sizeof(probes[0]))

static struct random numbers;
static const char *program;
static int input, output;
static uint32_t edge;
static char kept[EDGE_BYTES];
static char buffer[4096];
static uint32_t vector[4], words[3];

static void prepare_edge(void)
{
	memset((void *)(edge - EDGE_BYTES), 'a', EDGE_BYTES);
}

static uint32_t prepare_path(void)
{
	return (uint32_t)strcpy((char *)edge - 2, "/");
}

static uint32_t prepare_vector(void)
{
	vector[0] = (uint32_t)buffer;
	vector[1] = vector[3] = 8;
	vector[2] = place_address(IN_KERNEL, &numbers);
	return (uint32_t)vector;
}

static uint32_t prepare_words(void)
{
	words[0] = (uint32_t)program;
	words[1] = place_address(IN_KERNEL, &numbers);
	return (uint32_t)words;
}

static long resolve(long argument)
{
	unsigned what = argument >> 16 & 0xff, extra = argument & 0xffff;

	if (!IS_CODE(argument))
		return argument;
	if (what < PLACES)
		return place_address(what, &numbers);
	switch (argument - extra) {
	case EDGE(0):
		return edge - extra;
	case EDGE_PATH:
		return prepare_path();
	case OUTPUT:
		return output;
	case INPUT:
		return input;
	case BUFFER:
		return (long)buffer;
	case PROGRAM:
		return (long)program;
	case VECTOR:
		return prepare_vector();
	default:
		return prepare_words();
	}
}

/* The call's result, or a negated error number. */
static long call(const struct probe *probe)
{
	long a[4];

	for (int i = 0; i < 4; i++)
		a[i] = resolve(probe->arguments[i]);
	long result = syscall(probe->number, a[0], a[1], a[2], a[3], 0, 0);

	return result == -1 ? -errno : result;
}

static bool is_expected(const struct probe *probe, long result)
{
	switch (probe->expected) {
	case FAULT:
		return result == -EFAULT;
	case REFUSAL:
		return result == -EFAULT || result == -EINVAL;
	case NOTHING:
	case PART:
		return result == -EFAULT || result == probe->value;
	default:
		return result == probe->value;
	}
}

/* What was written is what the result says, and all of it was the program's own. */
static bool output_is_clean(long result)
{
	static char written[4096];

	lseek(output, 0, SEEK_SET);
	ssize_t length = read(output, written, sizeof(written));

	if (length != (result > 0 ? result : 0))
		return false;
	for (ssize_t i = 0; i < length; i++)
		if (written[i] != 'a' && written[i] != BUFFER_BYTE)
			return false;
	return true;
}

static bool writes(const struct probe *probe)
{
	return probe->arguments[0] == OUTPUT;
}

/* Where all files are read-only, there is no output. */
static void open_files(void)
{
	output = open(SCRATCH, O_RDWR | O_CREAT | O_TRUNC, 0600);
	input = open(program, O_RDONLY);
	if (input < 0 || (output < 0 && errno != EROFS)) {
		perror(input < 0 ? "probe" : "probe: " SCRATCH);
		exit(1);
	}
}

static void close_files(void)
{
	close(input);
	close(output);
}

/* Runs one, and prints its line. Returns whether it went well. */
static bool run(const struct probe *probe, unsigned number)
{
	open_files();
	prepare_edge();
	memset(buffer, BUFFER_BYTE, sizeof(buffer));
	long result = call(probe);
	const char *missing = result == -ENOSYS		    ? "the kernel has no such call"
			      : writes(probe) && output < 0 ? "no file can be written"
							    : NULL;
	bool is_clean = missing || !writes(probe) || output_is_clean(result);
	bool ok = missing || (is_expected(probe, result) && is_clean);

	memcpy((void *)(edge - EDGE_BYTES), kept, EDGE_BYTES);
	close_files();
	printf("%s %u %s%s%s\n", ok ? "ok" : "not ok", number, probe->name,
	       missing ? " # SKIP " : "", missing ? missing : "");
	if (!ok)
		printf("# it gave %ld%s\n", result, is_clean ? "" : ", and wrote what it must not");
	fflush(stdout);
	return ok;
}

/* Fisher and Yates. */
static void shuffle(unsigned *order)
{
	for (unsigned i = 0; i < COUNT; i++) {
		unsigned other = random_below(&numbers, i + 1);

		order[i] = order[other];
		order[other] = i;
	}
}

int main(int count, char **arguments)
{
	unsigned order[COUNT], failed = 0;

	program = strdup((const char *)getauxval(AT_EXECFN));
	numbers.state = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
	edge = places_initialize();
	memcpy(kept, (void *)(edge - EDGE_BYTES), EDGE_BYTES);
	shuffle(order);
	printf("KTAP version 1\n1..%u\n", (unsigned)COUNT);
	for (unsigned i = 0; i < COUNT; i++)
		failed += !run(&probes[order[i]], i + 1);
	unlink(SCRATCH);
	return failed > 0;
}
