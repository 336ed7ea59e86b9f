/*
 * memcost cow PAGES WRITTEN: fork, with PAGES pages of the program's own, of which the child writes
 * to WRITTEN; its exit; and the parent's wait.
 * memcost read PAGES STEP: maps a file of PAGES pages, and reads one byte of each STEP-th page.
 * memcost fork: the price of the smallest program's fork, exit and wait.
 *
 * One line each, with the counter's steps for all of it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/measure.h"

#define PAGE   4096u
#define TIMES  8
#define NAME   "/tmp/memcost"
#define BEFORE 64u /* pages of the file that are not mapped: a file's first pages are apart */

static void fail(const char *what)
{
	fprintf(stderr, "memcost: %s failed\n", what);
	exit(1);
}

static char *map(unsigned pages, int protection, int flags, int file, unsigned before)
{
	char *memory = mmap(NULL, pages * PAGE, protection, flags, file, before * PAGE);

	if (memory == MAP_FAILED)
		fail("mmap");
	return memory;
}

/* The child writes to pages that are spread over all of them. */
static uint64_t fork_once(char *memory, unsigned pages, unsigned written)
{
	int status;
	uint64_t start = counter_read();
	pid_t child = fork();

	if (child == 0) {
		for (unsigned i = 0; i < written; i++)
			memory[(uint64_t)i * pages / written * PAGE] = 2;
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		fail("fork");
	return counter_read() - start;
}

/* The least of some rounds: an interrupt may come in between. */
static uint64_t fork_cost(unsigned pages, unsigned written)
{
	char *memory = map(pages + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < pages; i++)
		memory[i * PAGE] = 1;
	for (unsigned i = 0; i < TIMES; i++) {
		uint64_t steps = fork_once(memory, pages, written);

		least = steps < least ? steps : least;
	}
	return least;
}

static uint64_t read_cost(unsigned pages, unsigned step)
{
	static char page[PAGE];
	volatile char byte;
	int file = open(NAME, O_CREAT | O_TRUNC | O_RDWR, 0600);

	for (unsigned i = 0; i < BEFORE + pages; i++)
		if (write(file, page, PAGE) != PAGE)
			fail("write");
	char *memory = map(pages, PROT_READ, MAP_PRIVATE, file, BEFORE);
	uint64_t start = counter_read();

	for (unsigned i = 0; i < pages; i += step)
		byte = memory[i * PAGE];
	start = counter_read() - start;
	(void)byte;
	unlink(NAME);
	return start;
}

static unsigned number(const char *text)
{
	return strtoul(text, NULL, 10);
}

int main(int count, char **words)
{
	const char *what = count > 1 ? words[1] : "";
	unsigned first = count > 3 ? number(words[2]) : 0,
		 second = count > 3 ? number(words[3]) : 0;
	uint64_t steps = 0;

	if (strcmp(what, "cow") == 0 || strcmp(what, "fork") == 0)
		steps = fork_cost(first, second);
	else if (strcmp(what, "read") == 0 && second > 0)
		steps = read_cost(first, second);
	if (steps == 0) {
		fprintf(stderr, "memcost: cow PAGES WRITTEN, read PAGES STEP, or fork\n");
		return 1;
	}
	printf("memcost: %s %u %u, %llu steps\n", what, first, second, (unsigned long long)steps);
	return 0;
}
