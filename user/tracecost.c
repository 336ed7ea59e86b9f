/*
 * tracecost FILE [COUNT]: the cost of keeping a record of each system call. For getpid, and for
 * reads of 512 bytes of FILE that the page cache has, in the counter's steps for one call:
 *
 *	off	no record
 *	ring	a record in the kernel's ring (/proc/syscalls)
 *	print	no ring, but a line for each call on the standard output: a console
 *
 * COUNT is that of a round; the least of several rounds counts. What is written to a console takes
 * no time on an emulated one; on a serial line each byte of it does.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/measure.h"

#define ROUNDS	3
#define SECTOR	512
#define CONTROL "/proc/syscalls"

static int file;
static unsigned times = 50;
static char buffer[SECTOR];

static void fail(const char *what)
{
	fprintf(stderr, "tracecost: ");
	perror(what);
	exit(1);
}

static void ask_nothing(void)
{
	getpid();
}

static void read_sector(void)
{
	if (pread(file, buffer, SECTOR, 0) != SECTOR)
		fail("pread");
}

/* As a line of the ring is shown. */
static void print_line(int process, const char *name)
{
	char line[96];
	int length = snprintf(line, sizeof(line), "%d %s(%d, %p, %d, 0) = %d\n", process, name,
			      file, (void *)buffer, SECTOR, SECTOR);

	if (write(1, line, (size_t)length) != length)
		fail("write");
}

static void switch_ring(const char *to)
{
	int control = open(CONTROL, O_WRONLY);

	if (control < 0 || write(control, to, 1) != 1)
		fail(CONTROL);
	close(control);
}

/* Steps for one call, of the best round. */
static unsigned long long best(void (*call)(void), const char *name, int is_printed)
{
	unsigned long long least = 0;
	int process = getpid();

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t start = counter_read();

		for (unsigned i = 0; i < times; i++) {
			call();
			if (is_printed)
				print_line(process, name);
		}
		uint64_t steps = counter_read() - start;

		if (round == 0 || steps < least)
			least = steps;
	}
	return least / times;
}

static void measure(const char *name, void (*call)(void))
{
	unsigned long long off, ring, print;

	call();
	switch_ring("0");
	off = best(call, name, 0);
	switch_ring("1");
	ring = best(call, name, 0);
	switch_ring("0");
	print = best(call, name, 1);
	printf("cost %s %llu %llu %llu\n", name, off, ring, print);
}

int main(int count, char **arguments)
{
	if (count > 2)
		times = (unsigned)strtoul(arguments[2], NULL, 10);
	if (count < 2 || count > 3 || times == 0) {
		fprintf(stderr, "usage: tracecost FILE [COUNT]\n");
		return 2;
	}
	file = open(arguments[1], O_RDONLY);
	if (file < 0)
		fail(arguments[1]);
	measure("getpid", ask_nothing);
	measure("pread", read_sector);
	return 0;
}
