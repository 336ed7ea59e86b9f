/* Running what was read: pipelines and their redirections. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/sh/sh.h"

#define SAVED_FIRST 10 /* descriptors from here on keep what a redirection hides */

/* ---- redirections ---- */

/* The descriptor that is to be copied, or that of the file, newly opened; -1 after a complaint. */
static int open_redirection(const struct redirection *redirection)
{
	char *word = word_expand(redirection->word);
	int descriptor;

	if (redirection->flags == COPY)
		descriptor = fcntl(word ? atoi(word) : -1, F_DUPFD, SAVED_FIRST);
	else
		descriptor = open(word ? word : "", redirection->flags, 0666);
	if (descriptor < 0)
		fprintf(stderr, "sh: %s: %s\n", word ? word : "''", strerror(errno));
	free(word);
	return descriptor;
}

/* Returns 0, or -1 after a complaint. */
static int redirect(const struct redirection *redirection)
{
	for (; redirection; redirection = redirection->next) {
		int descriptor = open_redirection(redirection);

		if (descriptor < 0)
			return -1;
		if (descriptor != redirection->descriptor) {
			dup2(descriptor, redirection->descriptor);
			close(descriptor);
		}
	}
	return 0;
}

/* ---- words ---- */

/* Expands a command's words; returns how many are left. To be freed with free_words. */
static int expand(const struct command *command, char **words)
{
	int count = 0;

	for (int i = 0; i < command->count; i++) {
		char *word = word_expand(command->words[i]);

		if (word)
			words[count++] = word;
	}
	words[count] = NULL;
	return count;
}

static void free_words(char **words)
{
	for (; *words; words++)
		free(*words);
}

/* How many assignments come before the command. */
static int count_assignments(char **words)
{
	int count = 0;

	while (words[count] && word_is_assignment(words[count]))
		count++;
	return count;
}

/* ---- one command ---- */

/* Replaces this process. A file that is not a program is taken for a script. */
static void become(char **words) __attribute__((noreturn));
static void become(char **words)
{
	execvp(words[0], words);
	int error = errno, script = error == ENOEXEC ? open(words[0], O_RDONLY | O_CLOEXEC) : -1;

	if (script >= 0) {
		positional = words;
		run_file(script, false);
		exit(last_status);
	}
	fprintf(stderr, "sh: %s: %s\n", words[0], error == ENOENT ? "not found" : strerror(error));
	exit(error == ENOENT ? STATUS_NOT_FOUND : STATUS_NO_RUN);
}

/* In a child of the shell. */
static void run_here(const struct command *command) __attribute__((noreturn));
static void run_here(const struct command *command)
{
	char *words[WORDS_MAX + 1];

	if (redirect(command->redirections) < 0)
		exit(EXIT_FAILURE);
	if (command->group)
		exit(run_list(command->group));
	int count = expand(command, words), first = count_assignments(words);

	for (int i = 0; i < first; i++)
		variable_assign(words[i], true);
	if (first == count)
		exit(EXIT_SUCCESS);
	builtin *own = builtin_find(words[first]);

	if (own)
		exit(own(count - first, words + first));
	become(words + first);
}

/* Runs a command of the shell itself; the descriptors are as before when it is done. */
static int run_own(const struct command *command, builtin *own, int count, char **words)
{
	int saved[3], status = EXIT_FAILURE;

	fflush(stdout);
	for (int i = 0; i < 3; i++)
		saved[i] = fcntl(i, F_DUPFD_CLOEXEC, SAVED_FIRST);
	if (redirect(command->redirections) == 0)
		status = own ? own(count, words) : EXIT_SUCCESS;
	fflush(stdout);
	for (int i = 0; i < 3; i++) {
		dup2(saved[i], i);
		close(saved[i]);
	}
	return status;
}

/* Runs a command that needs no process. Returns its status, or -1 for another. */
static int run_without_process(const struct command *command)
{
	char *words[WORDS_MAX + 1];
	int status = -1;

	if (command->group || command->next)
		return -1;
	int count = expand(command, words), first = count_assignments(words);
	builtin *own = first < count ? builtin_find(words[first]) : NULL;

	if (own || first == count) {
		for (int i = 0; i < first; i++)
			variable_assign(words[i], false);
		status = run_own(command, own, count - first, words + first);
	}
	free_words(words);
	return status;
}

/* ---- pipelines ---- */

/* The ends of the pipes on either side of a process; -1: none there. */
struct ends {
	int input, output, unused;
};

static void connect(const struct ends *ends)
{
	if (ends->input >= 0) {
		dup2(ends->input, STDIN_FILENO);
		close(ends->input);
	}
	if (ends->output >= 0) {
		dup2(ends->output, STDOUT_FILENO);
		close(ends->output);
		close(ends->unused);
	}
}

static pid_t start(const struct command *command, const struct ends *ends, pid_t group,
		   bool background)
{
	pid_t process = fork();

	if (process < 0)
		fprintf(stderr, "sh: fork: %s\n", strerror(errno));
	if (process == 0) {
		jobs_enter(group, !background);
		connect(ends);
		run_here(command);
	}
	if (process > 0 && jobs_controlled)
		setpgid(process, group); /* the child does so too: one of them is first */
	return process;
}

/* Makes the pipe after a command, unless it is the last. Returns 0, or -1 after a complaint. */
static int make_pipe(const struct command *command, struct ends *ends)
{
	int pair[2] = { -1, -1 };

	if (command->next && pipe(pair) < 0) {
		fprintf(stderr, "sh: pipe: %s\n", strerror(errno));
		return -1;
	}
	ends->output = pair[1];
	ends->unused = pair[0];
	return 0;
}

/* Starts all the processes. Returns how many there are. */
static int start_all(const struct command *command, pid_t *processes, bool background)
{
	struct ends ends = { .input = -1 };
	int count = 0;

	fflush(stdout);
	for (; command && make_pipe(command, &ends) == 0; command = command->next) {
		pid_t process = start(command, &ends, count ? processes[0] : 0, background);

		close(ends.input);
		close(ends.output);
		ends.input = ends.unused;
		if (process < 0)
			break;
		processes[count++] = process;
	}
	if (command)
		close(ends.input);
	return count;
}

static int run_pipeline(const struct pipeline *pipeline, const char *text, bool background)
{
	pid_t processes[PROCESSES_MAX];
	int status = background ? -1 : run_without_process(pipeline->first);

	if (status < 0) {
		int count = start_all(pipeline->first, processes, background);

		status = count ? jobs_add(processes, count, text, background) : EXIT_FAILURE;
	}
	return pipeline->negated ? !status : status;
}

static bool holds(enum condition condition)
{
	return condition == ALWAYS || (condition == AFTER_SUCCESS) == (last_status == 0);
}

/* Pipelines with conditions in the background are the work of a shell of their own. */
static void run_in_background(const struct list *list)
{
	struct list inner = { .first = list->first, .text = list->text };
	struct command group = { .group = &inner };
	struct pipeline pipeline = { .first = &group };

	run_pipeline(list->first->next ? &pipeline : list->first, list->text, true);
	last_status = 0;
}

int run_list(const struct list *list)
{
	for (; list; list = list->next) {
		if (list->background) {
			run_in_background(list);
			continue;
		}
		for (const struct pipeline *each = list->first; each; each = each->next)
			if (holds(each->condition))
				last_status = run_pipeline(each, list->text, false);
	}
	return last_status;
}
