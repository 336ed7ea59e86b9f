/*
 * The kernel's own command line, for scripts, tests and people, until a shell can run.
 *
 * A command is a line of a table marked COMMAND_TABLE, in any file: the linker puts the tables
 * next to each other, so a kernel has the commands of the files that it is made of. A line is cut
 * into words in place, as argv is for a program:
 *
 *	"frames  3 # three"	->	"frames" and "3": the blanks after them have become NULs
 *
 * No memory is allocated and no line is copied, so the caller's text is changed. Commands run one
 * after the other on the caller's stack, with interrupts as the caller has them; they may sleep if
 * the caller may. There are no quotes: a word ends at the next blank.
 */
#include "kernel/report/monitor.h"

#include "kernel/cpu/machine.h"
#include "kernel/lib/number.h"
#include "kernel/report/printk.h"
#include "kernel/lib/string.h"

#define LINE_LIMIT  256 /* of what a person types; the host's script may be longer */
#define USAGE_WIDTH 36	/* a command's name and arguments */

/* Where boot/kernel.ld puts the tables. */
extern const struct command commands_start[], commands_end[];

/* The command of this name, or NULL. Names must differ: the first one found wins. */
static const struct command *find_command(const char *name)
{
	for (const struct command *each = commands_start; each < commands_end; each++)
		if (strcmp(each->name, name) == 0)
			return each;
	return NULL;
}

int monitor_split(char *line, char **words)
{
	int count = 0;

	while (count < MONITOR_ARGUMENTS) {
		while (*line == ' ' || *line == '\t')
			*line++ = '\0';
		if (*line == '\0' || *line == '#') /* a comment, up to the end of the line */
			break;
		words[count++] = line;
		while (*line && *line != ' ' && *line != '\t')
			line++;
	}
	return count;
}

/* A status that is not 0 has been explained on the console: an unknown name, too few arguments, or
 * by the command itself. */
int monitor_execute(char *line)
{
	char *words[MONITOR_ARGUMENTS];
	int count = monitor_split(line, words);

	if (count == 0)
		return EXIT_SUCCESS;
	const struct command *command = find_command(words[0]);

	if (!command) {
		printk("%s: no such command; try help\n", words[0]);
		return EXIT_FAILURE;
	}
	if ((unsigned)count - 1 < command->minimum) {
		printk("usage: %s %s\n", command->name, command->arguments);
		return EXIT_FAILURE;
	}
	return command->run(count, words);
}

/* Goes on after a failed command, so that one run shows every failure, and remembers the first for
 * the exit status. Each line is echoed, so that the log shows what an output belongs to. */
int monitor_script(char *script)
{
	int first = EXIT_SUCCESS;

	while (script) {
		char *next = strchr(script, ';');

		if (next)
			*next++ = '\0';
		while (*script == ' ')
			script++;
		if (*script) {
			printk("> %s\n", script);
			int status = monitor_execute(script);

			if (first == EXIT_SUCCESS)
				first = status;
		}
		script = next;
	}
	return first;
}

/* Reads one line and echoes it. A terminal sends 0x7f or '\b' for the backspace key and '\r' for
 * Enter. Characters beyond the line's size are dropped, and not echoed, so that the person sees it.
 */
static void read_line(char *line, size_t size, char (*get)(void))
{
	size_t length = 0;

	for (;;) {
		char character = get();

		if (character == '\r' || character == '\n')
			break;
		if ((character == '\b' || character == 0x7f) && length > 0) {
			length--;
			printk("\b \b");
		} else if (character >= ' ' && character < 0x7f && length + 1 < size) {
			line[length++] = character;
			printk("%c", character);
		}
	}
	line[length] = '\0';
	printk("\n");
}

/* Does not return: the exit command is the way out. */
void monitor_converse(char (*get)(void))
{
	char line[LINE_LIMIT];

	for (;;) {
		printk("apprentice> ");
		read_line(line, sizeof(line), get);
		monitor_execute(line);
	}
}

/* The commands that every lesson has. A name and its arguments are in one column, for which a width
 * below 0 puts them to the left. */
static int run_help(int count, char **arguments)
{
	for (const struct command *each = commands_start; each < commands_end; each++)
		printk("  %s %*s %s\n", each->name, (int)strlen(each->name) - USAGE_WIDTH,
		       each->arguments, each->help);
	return EXIT_SUCCESS;
}

/* 62 and 63 are the boot loader's failure and a panic: kernel/cpu/machine.h. */
static int run_exit(int count, char **arguments)
{
	uint64_t status = EXIT_SUCCESS;

	if (count > 1 && (!number_parse(arguments[1], &status) || status > 61)) {
		printk("exit: %s is not a status from 0 to 61\n", arguments[1]);
		return EXIT_FAILURE;
	}
	machine_exit(status);
}

static const struct command commands[] COMMAND_TABLE = {
	{ "help", "", "this list", 0, run_help },
	{ "exit", "[STATUS]", "end the machine", 0, run_exit },
};
