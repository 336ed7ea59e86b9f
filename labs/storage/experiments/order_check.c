/*
 * order_check FILE direct|buffered ROUNDS: two tasks write all of a file again and again, each
 * write with a number of its own in every sector; two more read it, and count the reads that have
 * numbers of two writes. The file exists. A line of JSON at the end. For X30.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECTOR 512u
#define LENGTH (512u << 10)
#define PAIRS  2

struct seen {
	unsigned reads, torn;
};

static unsigned char data[LENGTH] __attribute__((aligned(4096)));

static void must(int holds, const char *what)
{
	if (!holds) {
		perror(what);
		exit(1);
	}
}

static void write_all(int file, unsigned task, unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++) {
		unsigned number = task + PAIRS * round;

		for (unsigned at = 0; at < LENGTH; at += SECTOR)
			memcpy(data + at, &number, sizeof(number));
		must(pwrite(file, data, LENGTH, 0) == (ssize_t)LENGTH, "order_check: write");
	}
}

static void read_all(int file, unsigned rounds, struct seen *seen)
{
	for (unsigned round = 0; round < rounds; round++) {
		unsigned at = SECTOR;

		must(pread(file, data, LENGTH, 0) == (ssize_t)LENGTH, "order_check: read");
		while (at < LENGTH && memcmp(data, data + at, sizeof(unsigned)) == 0)
			at += SECTOR;
		seen->reads++;
		seen->torn += at < LENGTH;
	}
}

int main(int count, char **arguments)
{
	int is_direct = count == 4 && strcmp(arguments[2], "direct") == 0;
	int file = count == 4 ? open(arguments[1], O_RDWR | (is_direct ? O_DIRECT : 0)) : -1;
	struct seen *seen = mmap(NULL, sizeof(*seen) * PAIRS, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int failed = 0, status;

	must(file >= 0, "usage: order_check FILE direct|buffered ROUNDS");
	must(seen != MAP_FAILED, "order_check: mmap");
	write_all(file, 0, 1);
	for (unsigned task = 0; task < 2 * PAIRS; task++) {
		pid_t child = fork();

		must(child >= 0, "order_check: fork");
		if (child == 0 && task < PAIRS)
			write_all(file, task, (unsigned)atoi(arguments[3]));
		else if (child == 0)
			read_all(file, (unsigned)atoi(arguments[3]), &seen[task - PAIRS]);
		if (child == 0)
			_exit(0);
	}
	while (wait(&status) > 0)
		failed |= status;
	printf("{\"reads\": %u, \"torn\": %u}\n", seen[0].reads + seen[1].reads,
	       seen[0].torn + seen[1].torn);
	return failed != 0;
}
