/* The kernel's own command line: for scripts, and for people until there is a user program to talk
 * to. */
#pragma once

#include <stddef.h>

#define MONITOR_ARGUMENTS 32

struct command {
	const char *name;
	const char *arguments; /* as shown by help: "DRIVE PATH" */
	const char *help;
	unsigned minimum; /* how many arguments it needs at least, its name not counted */
	/* Returns 0, or an exit status; it has then said what went wrong. */
	int (*run)(int count, char **arguments);
};

/* Adds help and exit. */
void monitor_initialize(void);

/* Adds commands; the table must live as long as the kernel. At most 8 tables. */
void monitor_register(const struct command *commands, size_t count);

/* Runs one line. It is changed. Returns the command's status; 0 for an empty line or a comment (#).
 */
int monitor_execute(char *line);

/* Runs the lines of a script, parted by newlines or semicolons, and shows each. It is changed. Goes
 * on after a failure. Returns the first status that was not 0. */
int monitor_script(char *script);

/* Reads lines from a person and runs them, for ever. get waits for a character. */
void monitor_converse(char (*get)(void)) __attribute__((noreturn));
