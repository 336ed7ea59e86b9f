/* What the programs of exercise 4.5 share. The first argument says what is tried, others are
 * numbers from the test. */
#pragma once

#include <stdint.h>

#include "tests/lesson4/programs/program.h"

#define SIGKILL 9
#define SIGCHLD 17
#define SIGCONT 18
#define SIGSTOP 19

/* Something to try, by its name. The last one has no name. */
struct trial {
	const char *name;
	void (*run)(void);
};

static uint32_t numbers[8];

static inline int32_t fork(void)
{
	return call(CALL_FORK, 0, 0, 0);
}

static inline void __attribute__((noreturn)) leave(int32_t code)
{
	for (;;)
		call(CALL_EXIT, code, 0, 0);
}

static inline int32_t wait_for(int32_t pid, int32_t *status, uint32_t options)
{
	return call(CALL_WAITPID, pid, (uintptr_t)status, options);
}

static inline void rest(void)
{
	const uint32_t time[2] = { 0, 30000000 };

	call(CALL_NANOSLEEP, (uintptr_t)time, 0, 0);
}

static inline int is_same(const char *one, const char *other)
{
	while (*one && *one == *other)
		one++, other++;
	return *one == *other;
}

/* Tries what the arguments name. Returns the program's exit code. */
static inline int run_trial(const struct trial *trials, int count, char **words)
{
	for (int i = 2; i < count && i < 10; i++)
		numbers[i - 2] = number_of(words[i]);
	for (; trials->name; trials++)
		if (is_same(trials->name, words[1])) {
			trials->run();
			return 0;
		}
	return 1;
}
