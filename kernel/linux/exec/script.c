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

#include "kernel/lib/string.h"
#include "kernel/process/exec.h"
#include "kernel/process/exec_elf.h"

#define INTERPRETERS 4 /* a script may name a script; at most this many */

static bool is_blank(char character)
{
	return character == ' ' || character == '\t';
}

/* Cuts the first line of a script, after its #!, into a path and the rest, one argument. Either
 * may come out empty. */
static void cut_line(char *line, char **path, char **argument)
{
	char *end = line + strlen(line), *at = line;

	while (end > line && is_blank(end[-1]))
		*--end = '\0';
	while (is_blank(*at))
		at++;
	for (*path = at; *at && !is_blank(*at); at++)
		;
	while (is_blank(*at))
		*at++ = '\0';
	*argument = at;
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

/* Is it a program that asks for a dynamic linker? elf_check has refused it, so no number in it can
 * be trusted. */
static bool is_dynamic(const struct elf_image *image)
{
	struct elf_program_header segment;
	uint32_t at = image->header.phoff;

	if (image->bytes < sizeof(image->header) || image->header.magic != ELF_MAGIC ||
	    image->header.machine != ELF_MACHINE_386)
		return false;
	for (unsigned i = 0; i < image->header.phnum && at <= ELF_BEGINNING - sizeof(segment);
	     i++, at += sizeof(segment)) {
		memcpy(&segment, &image->beginning[at], sizeof(segment));
		if (segment.type == ELF_SEGMENT_INTERPRETER)
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
		exec_set_name(path); /* not the interpreter's */
	return error;
}
