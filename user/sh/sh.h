/*
 * A small shell: pipes, redirections, lists, jobs, variables, quotes. Each line is read into a tree
 * (parse.c), the words of a command are expanded when it runs (words.c), and its processes are a
 * job (jobs.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define WORDS_MAX     64 /* in a command */
#define PROCESSES_MAX 8	 /* in a pipeline */

#define STATUS_USAGE	 2
#define STATUS_NO_RUN	 126
#define STATUS_NOT_FOUND 127
#define STATUS_SIGNAL	 128 /* and the signal's number on top */

/* ---- the tree of a line ---- */

struct redirection {
	int descriptor;
	int flags;  /* how to open the file; COPY: word names a descriptor */
	char *word; /* not yet expanded */
	struct redirection *next;
};
#define COPY (-1)

struct command {
	char *words[WORDS_MAX + 1]; /* not yet expanded; NULL ends them */
	int count;
	struct list *group; /* what is in parentheses, instead of words */
	struct redirection *redirections;
	struct command *next; /* in the pipeline */
};

enum condition { ALWAYS, AFTER_SUCCESS, AFTER_FAILURE };

struct pipeline {
	struct command *first;
	bool negated;
	enum condition condition; /* on the status of the one before */
	struct pipeline *next;
};

/* Pipelines joined by && and ||, and what follows. */
struct list {
	struct pipeline *first;
	bool background;
	const char *text; /* as it was typed */
	struct list *next;
};

/* Reads a line. Returns NULL for an empty one, and after a complaint for one that is wrong; then
 * *wrong is true. The tree lives until parse_forget. */
struct list *parse(const char *line, bool *wrong);
void parse_forget(void);

/* ---- words ---- */

extern int last_status;
extern pid_t last_background;

/* $0, $1, ...: NULL after the last. */
extern char **positional;

/* What is after the end of a word that starts at text. */
const char *word_end(const char *text);

/* The word with variables replaced and quotes taken away, in memory of its own; NULL when nothing
 * is left of it, and nothing was quoted. */
char *word_expand(const char *word);

/* Is it NAME=value? */
bool word_is_assignment(const char *word);
void variable_assign(const char *assignment, bool exported);

/* ---- running ---- */

/* Returns the status, which is also in last_status. */
int run_list(const struct list *list);

/* Reads and runs lines to the end of the file. */
void run_file(int descriptor, bool prompts);
void run_text(const char *text);

/* ---- commands of the shell itself ---- */

typedef int builtin(int count, char **words);

/* The shell's own command of this name, or NULL. */
builtin *builtin_find(const char *name);

/* ---- jobs ---- */

/* Is there a terminal whose foreground changes? */
extern bool jobs_controlled;

void jobs_start(void);

/* In a child: joins the job's group, and gets back the usual signals. */
void jobs_enter(pid_t group, bool foreground);

/* In the shell: all processes are there. Returns the status of a job in the foreground once it has
 * ended or stopped; 0 for one in the background. */
int jobs_add(const pid_t *processes, int count, const char *text, bool background);

/* Notes what has ended meanwhile, and tells of it if told to. */
void jobs_poll(bool tell);

builtin jobs_list, jobs_wait, jobs_foreground, jobs_background, jobs_kill;
