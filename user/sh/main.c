/* sh [-c TEXT | FILE] [ARGUMENT ...]: where the lines come from. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/sh/sh.h"

#define LINE_ROOM 4096

static void run_line(const char *line)
{
	bool wrong;
	const struct list *lists = parse(line, &wrong);

	if (wrong)
		last_status = STATUS_USAGE;
	else
		run_list(lists);
	parse_forget();
}

/* Reads a line, without its end; a byte at a time, since what follows belongs to whom the line
 * runs. Returns false at the end of the file. */
static bool read_line(int descriptor, char *line)
{
	size_t length = 0;
	char character;
	ssize_t got;

	while ((got = read(descriptor, &character, 1)) == 1 || (got < 0 && errno == EINTR)) {
		if (got < 0)
			continue;
		if (character == '\n')
			break;
		if (length < LINE_ROOM - 1)
			line[length++] = character;
	}
	line[length] = '\0';
	return got == 1 || length > 0;
}

void run_file(int descriptor, bool prompts)
{
	char line[LINE_ROOM];

	for (;;) {
		if (prompts) {
			jobs_poll(true);
			fputs(getuid() == 0 ? "# " : "$ ", stdout);
			fflush(stdout);
		}
		if (!read_line(descriptor, line))
			break;
		run_line(line);
	}
	if (prompts)
		puts("");
}

void run_text(const char *text)
{
	char line[LINE_ROOM];

	while (*text) {
		int length = strcspn(text, "\n");

		snprintf(line, sizeof(line), "%.*s", length, text);
		run_line(line);
		text += length + (text[length] == '\n');
	}
}

static void run_script(const char *path)
{
	int descriptor = open(path, O_RDONLY | O_CLOEXEC);

	if (descriptor < 0) {
		fprintf(stderr, "sh: %s: %s\n", path, strerror(errno));
		exit(STATUS_NOT_FOUND);
	}
	run_file(descriptor, false);
}

int main(int count, char **arguments)
{
	positional = arguments;
	if (count > 2 && strcmp(arguments[1], "-c") == 0) {
		positional = count > 3 ? arguments + 3 : arguments;
		if (count == 3)
			arguments[1] = NULL;
		run_text(arguments[2]);
	} else if (count > 1) {
		positional = arguments + 1;
		run_script(arguments[1]);
	} else {
		bool interactive = isatty(STDIN_FILENO);

		if (interactive)
			jobs_start();
		run_file(STDIN_FILENO, interactive);
	}
	exit(last_status);
}
