/* Exercise 4.5: a child, and its memory. */
#include "tests/lesson4/programs/family.h"

static void simple(void)
{
	int32_t status = -1, child = fork();

	if (child == 0) {
		say("child", numbers[0]);
		leave(numbers[1]);
	}
	int32_t pid = wait_for(child, &status, 0);

	say("same", pid == child && child > 1);
	say("code", status >> 8);
}

static uint32_t everywhere = 5;

static void memory(void)
{
	volatile uint32_t on_stack = numbers[0];
	int32_t status = 0;

	everywhere = numbers[1];
	int32_t child = fork();

	if (child == 0) {
		rest();
		uint32_t sum = everywhere + on_stack;

		everywhere = on_stack = 1;
		leave(sum == numbers[0] + numbers[1] ? 3 : 4);
	}
	everywhere = on_stack = 2;
	wait_for(child, &status, 0);
	say("child", status >> 8);
	say("parent", everywhere + on_stack);
}

int run(int count, char **words)
{
	static const struct trial trials[] = {
		{ "simple", simple },
		{ "memory", memory },
		{ 0 },
	};

	return run_trial(trials, count, words);
}
