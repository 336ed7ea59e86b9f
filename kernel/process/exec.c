/* Programs: from a path to a task that is about to run what is there. */
#include "kernel/process/exec.h"

#include <stdbool.h>
#include <stddef.h>

#include "kernel/cpu/descriptors.h"
#include "kernel/lib/errno.h"
#include "kernel/process/exec_elf.h"
#include "kernel/process/exec_stack.h"
#include "kernel/lib/string.h"
#include "kernel/process/signal.h"
#include "mm/page_alloc.h"

#define EXEC_POINTERS  16384u /* with the strings they fill three quarters of the stack */
#define INTERPRETERS   4      /* a script may name a script, so often */
#define FLAGS_AT_START 0x202  /* interrupts on */

/* Opens the file and reads its beginning. */
static int open_image(const char *path, struct elf_image *image)
{
	int error = file_open_program(path, &image->file);

	if (error)
		return error;
	const struct inode *inode = image->file->inode;
	struct buffer buffer = buffer_of_kernel(image->beginning, ELF_BEGINNING);
	int bytes = -EACCES;

	if (inode_is(inode, S_IFREG) && (inode->mode & S_IXALL))
		bytes = file_read_at(image->file, &buffer, 0);
	if (bytes < 0)
		file_release(image->file);
	else
		image->bytes = bytes;
	return bytes < 0 ? bytes : 0;
}

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

/* Cuts the first line of a script, behind its #!, into a path and the rest, one argument. Either
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
	int error = exec_insert_argument(strings, script);

	if (!error && *argument)
		error = exec_insert_argument(strings, argument);
	return error ? error : exec_insert_argument(strings, path);
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

/* If the file is a script, makes path (of PATH_SIZE bytes) that of its interpreter. Returns 1 then,
 * 0 for what is no script, or a negated errno. */
static int follow_script(struct elf_image *image, struct exec_strings *strings, char *path)
{
	char *line = (char *)image->beginning, *interpreter, *argument;

	if (image->bytes < 2 || line[0] != '#' || line[1] != '!')
		return 0;
	if (!end_line(line, image->bytes))
		return -ENOEXEC;
	cut_line(line + 2, &interpreter, &argument);
	if (!*interpreter || strlen(interpreter) >= EXEC_PATH)
		return -ENOEXEC;
	int error = insert_interpreter(strings, path, interpreter, argument);

	memcpy(path, interpreter, strlen(interpreter) + 1);
	return error ? error : 1;
}

/* Opens the program that is to be run in the end, and checks it. */
static int find_program(char *path, struct exec_strings *strings, struct elf_image *image)
{
	for (unsigned i = 0; i <= INTERPRETERS; i++) {
		int error = open_image(path, image);

		if (error)
			return error;
		error = follow_script(image, strings, path);
		if (error == 0 && (error = elf_check(image)) == 0 &&
		    (error = elf_check_room(image)) == 0)
			return 0;
		file_release(image->file);
		if (error < 0)
			return error;
	}
	return -ELOOP;
}

static void set_name(const char *path)
{
	const char *name = path;

	for (; *path; path++)
		if (*path == '/' && path[1])
			name = path + 1;
	size_t length = path - name < TASK_NAME ? path - name : TASK_NAME - 1;

	memset(current->name, 0, TASK_NAME); /* all of it can be read back */
	memcpy(current->name, name, length);
}

static void set_frame(struct trap_frame *frame, uint32_t entry, uint32_t stack)
{
	*frame = (struct trap_frame){
		.ds = USER_DATA,
		.es = USER_DATA,
		.eip = entry,
		.cs = USER_CODE,
		.eflags = FLAGS_AT_START,
		.user_esp = stack,
		.user_ss = USER_DATA,
	};
}

/* Behind process_empty_space the old program is gone. */
static int replace(const struct elf_image *image, const struct exec_strings *strings,
		   const char *path, struct trap_frame *frame)
{
	int32_t stack = -ENOMEM;
	int error = process_empty_space();

	if (error)
		return error;
	if (elf_load(image) == 0)
		stack = exec_build_stack(image, strings, path);
	if (stack < 0 && stack > -4096) {
		signal_send(current->process, SIGKILL);
		stack = 0;
	}
	set_name(path);
	files_set_program(current->process->files, image->file);
	files_close_on_exec(current->process->files);
	process_reset_for_exec();
	set_frame(frame, elf_entry(image), stack);
	return 0;
}

/* Programs expect a name of theirs; and the pointers to the strings need room, too. */
static int complete(struct exec_strings *strings)
{
	int error = strings->arguments == 0 ? exec_insert_argument(strings, "") : 0;
	uint32_t pointers = strings->arguments + strings->environment;

	if (!error && pointers > EXEC_POINTERS)
		error = -E2BIG;
	return error;
}

/* With pages for the program's beginning and for its path. */
static int exec_with(struct elf_image *image, char *program, const char *path,
		     struct exec_strings *strings, struct trap_frame *frame)
{
	uint32_t size = strlen(path) + 1;

	if (size > EXEC_PATH)
		return -ENAMETOOLONG;
	memcpy(program, path, size);
	int error = complete(strings);

	if (!error)
		error = find_program(program, strings, image);
	if (error)
		return error;
	error = replace(image, strings, program, frame);
	file_release(image->file);
	return error;
}

int exec(const char *path, struct exec_strings *strings, struct trap_frame *frame)
{
	struct elf_image *image = page_alloc(0);
	char *program = page_alloc(0);
	int error = -ENOMEM;

	if (image && program)
		error = exec_with(image, program, path, strings, frame);
	if (image)
		page_free(image, 0);
	if (program)
		page_free(program, 0);
	return error;
}
