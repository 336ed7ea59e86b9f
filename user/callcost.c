/*
 * callcost null: the price of asking the kernel for nothing, in four ways.
 * callcost copy: the price of asking it for bytes; callcost read N: for so many.
 *
 * A line each, with the counter's steps for one call: the least of several rounds, because an
 * interrupt may come in between. The loop around the calls is in all of them.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/measure.h"

#define ROUNDS 3
#define CALLS  50 /* in a round */
#define BYTES  65536u
#define FILE   "/tmp/callcost"

static void (*shared_entry)(void); /* AT_SYSINFO: takes a call's registers, as INT 0x80 does */
static char buffer[BYTES];
static int file;
static unsigned length;

static void __attribute__((noinline)) call_function(void)
{
	__asm__ volatile("");
}

static void call_gate(void)
{
	int result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(SYS_getpid) : "memory");
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
			 : "a"(SYS_getpid)
			 : "memory");
}

static void call_shared_page(void)
{
	int result;

	__asm__ volatile("call *%2" : "=a"(result) : "a"(SYS_getpid), "m"(shared_entry) : "memory");
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

int main(int count, char **arguments)
{
	if (count == 2 && strcmp(arguments[1], "null") == 0)
		return null_calls();
	if (count == 2 && strcmp(arguments[1], "copy") == 0)
		return copies(0);
	if (count == 3 && strcmp(arguments[1], "read") == 0)
		return copies((unsigned)strtoul(arguments[2], NULL, 10));
	fprintf(stderr, "usage: callcost null|copy|read N\n");
	return 2;
}
