/* Checks of what system calls do, each in a process of its own. Prints a line for each (KTAP). */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE 5 /* seconds for each check that does not ask for more by alarm() */

struct check {
	const char *name;
	bool (*holds)(void);
};

static inline bool check_holds(const struct check *check)
{
	int status = 1;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(PATIENCE);
		_exit(check->holds() ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	return status == 0;
}

/* Returns the program's exit status: 0, or 1 if one of them does not hold. */
static inline int check_all(const struct check *checks, unsigned count)
{
	unsigned failed = 0;

	printf("KTAP version 1\n1..%u\n", count);
	for (unsigned i = 0; i < count; i++) {
		fflush(stdout);
		bool ok = check_holds(&checks[i]);

		printf("%s %u %s\n", ok ? "ok" : "not ok", i + 1, checks[i].name);
		failed += !ok;
	}
	return failed > 0;
}
