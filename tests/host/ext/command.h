/* The commands of the program ext_host: tables, one a file, that main.c searches. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fs/ext/ext.h"

struct command {
	const char *name;
	void (*run)(char *arguments); /* what follows the name on the line, or NULL */
};

/* Each ends with a name of NULL. */
extern const struct command write_commands[];
extern const struct command model_commands[];
extern const struct command name_commands[];

/* The options of "write": read-only, no-barriers, no-replay, data=journal, data=writeback,
 * errors=continue, errors=remount-ro, errors=panic. */
const struct ext_options *write_options(char **words);

/* Prints "error ENAME". */
void say_error(int64_t error);

/* Obeys a line that is an operation of files.h, and prints "done RESULT" or its error. Returns
 * false for another line. */
bool files_obey(const char *line);
