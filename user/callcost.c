/*
 * callcost null [CALL]: the price of asking the kernel for nothing, in four ways: by getpid, or by
 * the call of this number.
 * callcost copy: the price of asking it for bytes; callcost read N: for this many.
 * callcost direct FILE COUNT BYTES: asks a drive, past the page cache, at random places; each read
 * is between two instructions_mark, at which instructions are counted (labs/bench/counting.py).
 *
 * A line each, with the counter's steps for one call: the least of several rounds, because an
 * interrupt may come in between. The loop around the calls is in all of them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/lib/random.h"
#include "user/measure.h"

#define ROUNDS 3
#define CALLS  50 /* in a round */
#define BYTES  65536u
#define FILE   "/tmp/callcost"
#define SPACE  (8u << 20) /* of a drive that is read */

static void (*shared_entry)(void); /* AT_SYSINFO: takes a call's registers, as INT 0x80 does */
static char buffer[BYTES] __attribute__((aligned(4096)));
static int file;
static unsigned length;
static int number = SYS_getpid;

static void __attribute__((noinline)) call_function(void)
{
	__asm__ volatile("");
}

static void call_gate(void)
{
	int result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number) : "memory");
}

/* What the shared page does, done here: its second half comes back to the label. */
static void call_sysenter(void)
{
	int result;

	__asm__ volatile("pushl $1f\n\t"
			 "pushl %%ecx\n\t"
			 "pushl %%edx\n\t"
			 "pushl %%ebp\n\t"
			 "movl %%esp, %%ebp\n\t"
			 "sysenter\n"
			 "1:"
			 : "=a"(result)
			 : "a"(number)
			 : "memory");
}

static void call_shared_page(void)
{
	int result;

	__asm__ volatile("call *%2" : "=a"(result) : "a"(number), "m"(shared_entry) : "memory");
}

static void call_read(void)
{
	pread(file, buffer, length, 0);
}

static void report(const char *what, void (*call)(void))
{
	uint64_t least = UINT64_MAX;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start = counter_read();

		for (int i = 0; i < CALLS; i++)
			call();
		uint64_t steps = counter_read() - start;

		least = steps < least ? steps : least;
	}
	printf("callcost: %s, %llu steps\n", what, (unsigned long long)(least / CALLS));
}

static int null_calls(void)
{
	report("function", call_function);
	report("int 0x80", call_gate);
	shared_entry = (void (*)(void))getauxval(AT_SYSINFO);
	if (!shared_entry) {
		puts("callcost: the kernel has no shared page: no SYSENTER");
		return 1;
	}
	report("sysenter", call_sysenter);
	report("shared page", call_shared_page);
	return 0;
}

static void report_read(void)
{
	char what[32];

	snprintf(what, sizeof(what), "%u bytes", length);
	report(what, call_read);
}

/* Of `only` bytes, or of many sizes if that is 0. */
static int copies(unsigned only)
{
	file = open(FILE, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (file < 0 || write(file, buffer, BYTES) != BYTES) {
		puts("callcost: " FILE " cannot be written");
		return 1;
	}
	for (length = only; length <= BYTES; length = length ? 2 * length : 1) {
		report_read();
		if (only)
			break;
	}
	return unlink(FILE) != 0;
}

static int direct(const char *name, unsigned count)
{
	struct random random = { 2010 };

	file = open(name, O_RDONLY | O_DIRECT);
	if (file < 0 || length == 0 || length > BYTES || length % 512) {
		printf("callcost: %s cannot be read in pieces of %u bytes\n", name, length);
		return 1;
	}
	for (unsigned i = 0; i < count; i++) {
		off_t offset = random_below(&random, SPACE / length) * length;

		instructions_mark();
		ssize_t done = pread(file, buffer, length, offset);

		instructions_mark();
		if (done != (ssize_t)length) {
			printf("callcost: %s: a read at %lld failed\n", name, (long long)offset);
			return 1;
		}
	}
	return 0;
}

int main(int count, char **arguments)
{
	if (count == 5 && strcmp(arguments[1], "direct") == 0) {
		length = (unsigned)strtoul(arguments[4], NULL, 10);
		return direct(arguments[2], (unsigned)strtoul(arguments[3], NULL, 10));
	}
	if ((count == 2 || count == 3) && strcmp(arguments[1], "null") == 0) {
		number = count == 3 ? atoi(arguments[2]) : SYS_getpid;
		return null_calls();
	}
	if (count == 2 && strcmp(arguments[1], "copy") == 0)
		return copies(0);
	if (count == 3 && strcmp(arguments[1], "read") == 0)
		return copies((unsigned)strtoul(arguments[2], NULL, 10));
	fprintf(stderr, "usage: callcost null [CALL]|copy|read N|direct FILE COUNT BYTES\n");
	return 2;
}
