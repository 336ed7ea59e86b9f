/* The kernel's own command line: for scripts, and for people until there is a shell. */
#pragma once

#define MONITOR_ARGUMENTS 32

struct command {
	const char *name;
	const char *arguments; /* as help shows them: "DRIVE PATH" */
	const char *help;
	unsigned minimum; /* how many arguments it needs at least, its name not counted */
	/* Returns 0, or an exit status after it has printed what went wrong. */
	int (*run)(int count, char **arguments);
};

/* Marks a table of commands: the linker puts all of them together (boot/kernel.ld). */
#define COMMAND_TABLE __attribute__((section(".commands"), used, aligned(4)))

/* Splits a line into words in place, up to its end or a comment (#). Returns how many, at most
 * MONITOR_ARGUMENTS. */
int monitor_split(char *line, char **words);

/* Runs one line, and changes its text. Returns the command's status; 0 for an empty line or a
 * comment (#).
 */
int monitor_execute(char *line);

/* Runs the lines of a script, separated by semicolons, and prints each of them. Changes the
 * script's text. Goes on after a failure. Returns the first status that was not 0. */
int monitor_script(char *script);

/* Reads lines from a person and runs them, for ever. get waits for a character. */
void monitor_converse(char (*get)(void)) __attribute__((noreturn));
