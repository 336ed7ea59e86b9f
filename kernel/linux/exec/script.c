/*
 * Programs that are text, and are run by an interpreter.
 *
 * "#!/bin/sh -e" in the first line of the file /etc/rc makes
 *
 *	/etc/rc one two		into		/bin/sh -e /etc/rc one two
 *
 * The interpreter may be a text again. It is run by exec() itself, so the page with the first line
 * stays until the interpreter's file has been read.
 */
#include <stdbool.h>

#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "kernel/process/exec.h"
#include "kernel/process/exec_elf.h"
#include "kernel/report/printk.h"
#include "kernel/task/task.h"

#define SEGMENT_INTERPRET 3 /* type of a program header */

#define INTERPRETERS 4 /* a script may name a script; at most this many */

static bool is_blank(char character)
{
	return character == ' ' || character == '\t';
}

static char *skip_blanks(char *at)
{
	while (is_blank(*at))
		at++;
	return at;
}

/* Cuts the first line of a script, after its #!, into a path and the rest, one argument. Either
 * may come out empty. */
static void cut_line(char *line, char **path, char **argument)
{
	char *end = line + strlen(line);

	while (end > line && is_blank(end[-1]))
		*--end = '\0';
	*path = skip_blanks(line);
	for (*argument = *path; **argument && !is_blank(**argument); (*argument)++)
		;
	if (**argument) {
		*(*argument)++ = '\0';
		*argument = skip_blanks(*argument);
	}
}

/* Puts a text before all others. */
static int insert_first(struct exec_strings *strings, const char *text)
{
	uint32_t size = strlen(text) + 1;

	if (size > EXEC_STRINGS - strings->length)
		return -E2BIG;
	memmove(strings->text + size, strings->text, strings->length);
	memcpy(strings->text, text, size);
	strings->length += size;
	strings->arguments++;
	return 0;
}

/* The script's own name takes the place of the first argument; before it come the interpreter and
 * its argument. */
static int insert_interpreter(struct exec_strings *strings, const char *script, const char *path,
			      const char *argument)
{
	if (strings->arguments > 0) {
		uint32_t size = strlen(strings->text) + 1;

		strings->length -= size;
		strings->arguments--;
		memmove(strings->text, strings->text + size, strings->length);
	}
	int error = insert_first(strings, script);

	if (!error && *argument)
		error = insert_first(strings, argument);
	return error ? error : insert_first(strings, path);
}

/* Ends the first line, which ends with the file, if not earlier. False: not all of it was read. */
static bool end_line(char *line, uint32_t bytes)
{
	line[bytes < ELF_BEGINNING ? bytes : ELF_BEGINNING - 1] = '\0';
	char *end = strchr(line, '\n');

	if (end)
		*end = '\0';
	return end || bytes < ELF_BEGINNING;
}

/* The task is called as the script, not as its interpreter. */
static void set_name(const char *path)
{
	const char *name = path;

	for (; *path; path++)
		if (*path == '/' && path[1])
			name = path + 1;
	memset(current->name, 0, TASK_NAME);
	snprintk(current->name, TASK_NAME, "%s", name);
}

/* Is it a program that asks for a dynamic linker? */
static bool is_dynamic(const struct elf_image *image)
{
	uint32_t at = image->header.phoff, size = sizeof(struct elf_program_header);

	if (image->bytes < sizeof(image->header) || image->header.magic != ELF_MAGIC ||
	    image->header.machine != ELF_MACHINE_386)
		return false;
	for (unsigned i = 0; i < image->header.phnum; i++, at += size) {
		struct elf_program_header segment;

		if (at > ELF_BEGINNING - size)
			return false;
		memcpy(&segment, &image->beginning[at], size);
		if (segment.type == SEGMENT_INTERPRET)
			return true;
	}
	return false;
}

int exec_other_kind(struct elf_image *image, const char *path, struct exec_strings *strings,
		    struct trap_frame *frame)
{
	char *line = (char *)image->beginning, *interpreter, *argument;

	if (is_dynamic(image))
		return -ENOENT; /* there is no linker: a shell must not take it for a script */
	if (image->bytes < 2 || line[0] != '#' || line[1] != '!' || !end_line(line, image->bytes))
		return -ENOEXEC;
	if (strings->depth++ == INTERPRETERS)
		return -ELOOP;
	cut_line(line + 2, &interpreter, &argument);
	if (!*interpreter)
		return -ENOEXEC;
	int error = insert_interpreter(strings, path, interpreter, argument);

	if (!error)
		error = exec(interpreter, strings, frame);
	if (!error)
		set_name(path);
	return error;
}
