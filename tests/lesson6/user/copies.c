/*
 * Exercise 6.4: what a program, its child and its grandchild find in memory that each of them
 * writes to, and the kernel for them. The numbers that they write come from the command line.
 */
#include "tests/lesson4/programs/family.h"

#define PAGE 4096

static volatile uint32_t data[3 * PAGE / 4] = { 1 }; /* in the file */
static volatile uint32_t zeros[3 * PAGE / 4];	     /* not in the file */

/* The first number is what all begin with; each generation adds the next one, everywhere. */
static void generations(void)
{
	volatile uint32_t on_stack[2 * PAGE / 4];
	int32_t child = 0, status;

	on_stack[7] = 0;
	for (uint32_t level = 0; level < 3; level++) {
		on_stack[7] += numbers[level];
		data[PAGE / 4] += numbers[level];
		zeros[PAGE / 4] += numbers[level];
		child = level < 2 ? fork() : 0;
		if (child) {
			wait_for(child, &status, 0);
			break;
		}
	}
	say("stack", on_stack[7]);
	say("data", data[PAGE / 4]);
	say("zeros", zeros[PAGE / 4]);
	leave(0);
}

/* The kernel writes for the child: what read() returns, where the parent has written, too. */
static void kernel_writes(void)
{
	int32_t ends[2], status = 5;

	zeros[0] = numbers[0];
	zeros[PAGE / 4] = numbers[0];
	call(CALL_PIPE, (uintptr_t)ends, 0, 0);
	call(CALL_WRITE, ends[1], (uintptr_t)&numbers[1], 4);
	int32_t child = fork();

	if (child == 0) {
		call(CALL_READ, ends[0], (uintptr_t)&zeros[PAGE / 4], 4);
		say("child-has", zeros[PAGE / 4]);
		leave(numbers[2]);
	}
	call(CALL_WAITPID, child, (uintptr_t)&status, 0);
	say("parent-has", zeros[PAGE / 4]);
	say("code", status >> 8);
	call(CALL_WRITE, ends[1], (uintptr_t)&numbers[3], 4);
	call(CALL_READ, ends[0], (uintptr_t)&zeros[PAGE / 4], 4);
	say("parent-reads", zeros[PAGE / 4]);
}

/* numbers: how many children, and how many pages each of them writes to. */
static void many(void)
{
	static volatile uint8_t pages[64 * PAGE];
	int32_t children[32];
	uint32_t wrong = 0;

	for (uint32_t page = 0; page < 64; page++)
		pages[page * PAGE] = page;
	for (uint32_t i = 0; i < numbers[0]; i++) {
		children[i] = fork();
		if (children[i])
			continue;
		for (uint32_t page = 0; page < numbers[1]; page++)
			pages[(page + i) % 64 * PAGE] += 1 + i;
		call(CALL_SCHED_YIELD, 0, 0, 0);
		for (uint32_t page = 0; page < numbers[1]; page++)
			wrong +=
			    pages[(page + i) % 64 * PAGE] != (uint8_t)((page + i) % 64 + 1 + i);
		leave(wrong != 0);
	}
	for (uint32_t i = 0; i < numbers[0]; i++) {
		int32_t status = -1;

		call(CALL_WAITPID, children[i], (uintptr_t)&status, 0);
		wrong += status != 0;
	}
	for (uint32_t page = 0; page < 64; page++)
		wrong += pages[page * PAGE] != page;
	say("wrong", wrong);
}

int run(int count, char **words)
{
	static const struct trial trials[] = {
		{ "generations", generations },
		{ "kernel", kernel_writes },
		{ "many", many },
		{ 0, 0 },
	};

	return run_trial(trials, count, words);
}
