/* Exercise 4.5: a child, its memory, and many of them. */
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

static int32_t own_pid(void)
{
	return call(CALL_GETPID, 0, 0, 0);
}

/* numbers: what the child says, and its exit code. Each line is said by one of the two, and the
 * test knows by the word which. */
static void family(void)
{
	int32_t parent = own_pid();
	int32_t status = -1, result = fork();

	if (own_pid() != parent) {
		say("fork-in-child", result);
		say("child", numbers[0]);
		leave(numbers[1]);
	}
	say("fork-in-parent", result > 1);
	say("waited", wait_for(result, &status, 0) == result);
	say("code", status >> 8);
	say("again", wait_for(-1, &status, 0));
}

static uint32_t everywhere = 5;

static void memory(void)
{
	volatile uint32_t on_stack = numbers[0];
	int32_t status = 0, parent = own_pid();

	everywhere = numbers[1];
	int32_t child = fork();

	if (own_pid() != parent) {
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

/* numbers: how many children, one after the other. Says how many there were. */
static void many(void)
{
	int32_t parent = own_pid(), status, count = 0;

	while (count < (int32_t)numbers[0]) {
		int32_t child = fork();

		if (own_pid() != parent)
			leave(0);
		if (child < 0) {
			say("failed", child);
			break;
		}
		wait_for(child, &status, 0);
		count++;
	}
	say("children", count);
}

int run(int count, char **words)
{
	static const struct trial trials[] = {
		{ "simple", simple },
		{ "family", family },
		{ "memory", memory },
		{ "many", many },
		{ 0 },
	};

	return run_trial(trials, count, words);
}
