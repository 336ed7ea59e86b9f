/* Checks of what system calls do, each in a process of its own. Prints a line for each (KTAP). */
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE 5 /* seconds for each check that does not ask for more by alarm() */

#define CALL_setrlimit 75
#define CALL_getrlimit 191

static volatile sig_atomic_t caught;

static inline void note(int signal)
{
	(void)signal;
	caught++;
}

static inline bool fails(long result, int error)
{
	return result == -1 && errno == error;
}

static inline int end_of(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return status;
}

/* Sets the soft limit. */
static inline long limit(int resource, unsigned soft)
{
	unsigned both[2];

	syscall(CALL_getrlimit, resource, both, 0, 0, 0, 0);
	both[0] = soft;
	return syscall(CALL_setrlimit, resource, both, 0, 0, 0, 0);
}

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

/* The same with a folder for the checks' files a and b, which are removed afterwards. */
static inline int check_all_in(const char *folder, const struct check *checks, unsigned count)
{
	char path[64];

	mkdir(folder, 0777);
	int status = check_all(checks, count);

	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%c", folder, 'a' + i);
		unlink(path);
	}
	rmdir(folder);
	return status;
}
