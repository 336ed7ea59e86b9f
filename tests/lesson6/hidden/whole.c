/*
 * All exercises of lesson 6 under one program: it has more memory than the machine, writes to some
 * pages of it, forks, and recurses; then it recurses until its stack ends.
 */
#include "tests/lesson4/programs/family.h"

#define PAGE  4096u
#define PAGES (256u << 8) /* 256 MiB */

static volatile uint32_t room[PAGES][PAGE / 4];

/* The place of the n-th word that is written to. */
static uint32_t place(uint32_t n)
{
	return (numbers[0] + n * 2654435761u) % PAGES;
}

static uint32_t sum(void)
{
	uint32_t found = 0;

	for (uint32_t n = 0; n < numbers[1]; n++)
		found += room[place(n)][n % (PAGE / 4)] + room[place(n)][1023];
	return found & 0x7fffffff;
}

static void write_all(uint32_t more)
{
	for (uint32_t n = 0; n < numbers[1]; n++)
		room[place(n)][n % (PAGE / 4)] += n + more;
}

/* Each level has half a page of the stack. */
static uint32_t __attribute__((noinline)) deep(uint32_t levels)
{
	volatile uint32_t words[PAGE / 8];

	words[0] = levels;
	return levels > 0 ? deep(levels - 1) + words[0] : 0;
}

static void generations(void)
{
	int32_t status = 0, child;

	write_all(numbers[2]);
	child = fork();
	if (child == 0) {
		write_all(1);
		say("child", sum());
		say("deep", deep(numbers[3]));
		leave(0);
	}
	wait_for(child, &status, 0);
	say("status", status);
	say("parent", sum());
}

/* A child whose stack has no end. */
static void endless(void)
{
	int32_t status = 0, child = fork();

	if (child == 0)
		leave(deep(1u << 30));
	wait_for(child, &status, 0);
	say("signal", status & 127);
	say("after", deep(10));
}

int run(int count, char **words)
{
	static const struct trial trials[] = {
		{ "generations", generations },
		{ "endless", endless },
		{ 0, 0 },
	};

	return run_trial(trials, count, words);
}
