/*
 * group_cost FILE COUNT: appends COUNT blocks of 4 KiB to a file, past the page cache, so that each
 * write allocates one. Each is between two marks (labs/bench/counting.py). For X29.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* As user/measure.h has it: a place that labs/bench/count.c counts at. */
#define MARK() __asm__ volatile("xchg %%bx, %%bx" : : : "memory")

static char block[4096] __attribute__((aligned(4096)));

int main(int count, char **arguments)
{
	int file = count == 3 ? open(arguments[1], O_WRONLY | O_CREAT | O_DIRECT, 0600) : -1;

	if (file < 0) {
		fprintf(stderr, "usage: group_cost FILE COUNT\n");
		return 2;
	}
	for (int left = atoi(arguments[2]); left > 0; left--) {
		MARK();
		ssize_t done = write(file, block, sizeof(block));

		MARK();
		if (done != (ssize_t)sizeof(block)) {
			perror("group_cost");
			return 1;
		}
	}
	return 0;
}
