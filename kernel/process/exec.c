/*
 * exec: makes the current task run the program at a path.
 *
 *	open_image		the file, and its first ELF_BEGINNING bytes
 *	elf_check		all that can be wrong with it; nothing has changed so far
 *	process_empty_space	the point of no return: the old program is gone
 *	elf_load		the segments, from the file into the space
 *	exec_build_stack	arguments, environment, auxiliary vector
 *	set_frame		the registers with which the task goes back to user mode
 *
 * The strings are the kernel's copy: the old program's memory is gone when the stack is built.
 * Called by a task for itself, in its system call or before it has been in user mode. It sleeps.
 */
#include "kernel/process/exec.h"

#include "fs/root.h"
#include "kernel/process/exec_stack.h"
#include "kernel/lib/string.h"
#include "kernel/process/signal.h"

#define EXEC_POINTERS  16384u /* with the strings they fill three quarters of the stack */
#define FLAGS_AT_START (EFLAGS_INTERRUPTS | EFLAGS_ALWAYS_ONE)

/* Opens the file and reads its beginning. */
int exec_open_image(const char *path, struct elf_image *image)
{
	int error = file_open_program(current->process->files, path, &image->file);

	if (error)
		return error;
	struct buffer buffer = buffer_of_kernel(image->beginning, ELF_BEGINNING);
	int bytes = file_read_at(image->file, &buffer, 0);

	image->bytes = bytes;
	if (bytes < 0)
		file_release(image->file);
	return bytes < 0 ? bytes : 0;
}

void exec_set_name(const char *path)
{
	const char *name = path;

	for (; *path; path++)
		if (*path == '/' && path[1])
			name = path + 1;
	size_t length = path - name < TASK_NAME ? path - name : TASK_NAME - 1;

	memset(current->name, 0, TASK_NAME); /* programs can read all of it */
	memcpy(current->name, name, length);
}

/* A new program begins with zeros in its registers, and interrupts enabled. */
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

/* After process_empty_space the old program is gone, so there is no caller left to receive an
 * error. */
static int replace(struct elf_image *image, const char *path, const struct exec_strings *strings,
		   struct trap_frame *frame)
{
	uint32_t stack = 0;
	int error = process_empty_space();

	if (error)
		return error;
	if (elf_load(image) != 0 || exec_build_stack(image, path, strings, &stack) != 0)
		signal_send(current->process, SIGKILL);
	exec_set_name(path);
	files_set(&current->process->files->program, image->file);
	files_close_on_exec(current->process->files);
	process_reset_for_exec();
	set_frame(frame, image->start, stack);
	return 0;
}

/* Replaces the program, if the file is one. */
static int run_image(struct elf_image *image, const char *path, struct exec_strings *strings,
		     struct trap_frame *frame)
{
	int error = elf_check(image);

	if (error == -ENOEXEC && exec_other_kind)
		return exec_other_kind(image, path, strings, frame);
	return error ?: elf_check_room(image) ?: replace(image, path, strings, frame);
}

/* Every error before the point of no return leaves the old program as it was. */
int exec(const char *path, struct exec_strings *strings, struct trap_frame *frame)
{
	struct elf_image *image = page_alloc(0);

	if (!image)
		return -ENOMEM;
	bool has_room = strings->arguments + strings->environment <= EXEC_POINTERS;
	int error = has_room ? exec_open_image(path, image) : -E2BIG;

	if (!error) {
		error = run_image(image, path, strings, frame);
		file_release(image->file);
	}
	page_free(image, 0);
	return error;
}
