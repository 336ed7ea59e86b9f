/* The commands of the shell itself: those that must change it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/sh/sh.h"

static int run_cd(int count, char **words)
{
	const char *home = getenv("HOME"), *path = count > 1 ? words[1] : home ? home : "/";

	if (chdir(path) == 0)
		return 0;
	fprintf(stderr, "sh: cd: %s: %s\n", path, strerror(errno));
	return 1;
}

static int run_pwd(int count, char **words)
{
	char path[PATH_MAX];

	(void)count, (void)words;
	if (!getcwd(path, sizeof(path))) {
		perror("sh: pwd");
		return 1;
	}
	puts(path);
	return 0;
}

static int run_exit(int count, char **words)
{
	exit(count > 1 ? atoi(words[1]) : last_status);
}

/* export NAME, or NAME=value */
static int run_export(int count, char **words)
{
	for (int i = 1; i < count; i++) {
		if (word_is_assignment(words[i])) {
			variable_assign(words[i], true);
			continue;
		}
		char reference[NAME_MAX + 1];

		snprintf(reference, sizeof(reference), "$%s", words[i]);
		char *value = word_expand(reference);

		setenv(words[i], value ? value : "", 1);
		free(value);
	}
	return 0;
}

static int run_unset(int count, char **words)
{
	for (int i = 1; i < count; i++)
		unsetenv(words[i]);
	return 0;
}

static int run_exec(int count, char **words)
{
	if (count == 1)
		return 0;
	execvp(words[1], words + 1);
	fprintf(stderr, "sh: exec: %s: %s\n", words[1], strerror(errno));
	return STATUS_NO_RUN;
}

static int run_nothing(int count, char **words)
{
	(void)count, (void)words;
	return 0;
}

static const struct {
	const char *name;
	builtin *run;
} builtins[] = {
	{ ":", run_nothing },	   { "bg", jobs_background }, { "cd", run_cd },
	{ "exec", run_exec },	   { "exit", run_exit },      { "export", run_export },
	{ "fg", jobs_foreground }, { "jobs", jobs_list },     { "kill", jobs_kill },
	{ "pwd", run_pwd },	   { "unset", run_unset },    { "wait", jobs_wait },
};

builtin *builtin_find(const char *name)
{
	for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++)
		if (strcmp(builtins[i].name, name) == 0)
			return builtins[i].run;
	return NULL;
}
