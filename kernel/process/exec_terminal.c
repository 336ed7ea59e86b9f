/*
 * Programs that the kernel itself starts, at the terminal and with a plain environment: the
 * prompt's `run`, the first program, the command of `make run CMD=...`.
 *
 * Called by a task that has no program yet. It returns to its caller, which goes to user mode with
 * the frame that exec has filled in.
 */

#include "fs/root.h"
#include "fs/tty/tty.h"
#include "kernel/process/exec.h"
#include "kernel/report/printk.h"
#include "kernel/process/process.h"

/* The words, and an environment that is the same for every program. */
static int add_strings(struct exec_strings *strings, int count, char *const words[])
{
	static const char *const environment[] = { "PATH=/bin:/sbin:/usr/bin:/usr/sbin", "HOME=/",
						   "TERM=vt100", NULL };
	int error = 0;

	for (int i = 0; i < count && !error; i++)
		error = exec_add(strings, words[i], &strings->arguments);
	for (const char *const *each = environment; *each && !error; each++)
		error = exec_add(strings, *each, &strings->environment);
	return error;
}

/* Descriptors 0, 1 and 2 are the terminal, whose foreground process this one becomes. */
static int open_terminal(void)
{
	struct file *file;
	int error = file_open(current->process->files, "/dev/console", O_RDWR, 0, &file);

	if (error)
		return error;
	for (uint32_t descriptor = 0; descriptor < 3; descriptor++) {
		file->references++;
		files_replace(current->process->files, descriptor, file, false);
	}
	file_release(file);
	tty_foreground = current->process->pgrp;
	return 0;
}

/* With a copy of the words, as exec wants it. */
static int load_words(int count, char *const words[], struct trap_frame *frame)
{
	struct exec_strings strings;
	int error = exec_strings_create(&strings);

	if (error)
		return error;
	error = add_strings(&strings, count, words) ?: exec(words[0], &strings, frame);
	exec_strings_destroy(&strings);
	return error;
}

/* For a task that is about to become a program: it has no files yet, or those of its last one. */
int exec_at_terminal(int count, char *const words[], struct trap_frame *frame)
{
	if (!current->process->files)
		current->process->files = files_create();
	int error = current->process->files ? open_terminal() : -ENOMEM;

	return error ? error : load_words(count, words, frame);
}

/* From a wait status, or a negated errno when the program could not be started. */
int exec_shell_status(int32_t status)
{
	if (status < 0)
		return status == -ENOENT ? 127 : 126;
	return status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff;
}

/* Says how it ended, unless that was by exit. */
int exec_report(const char *name, int32_t status)
{
	if (status < 0)
		printk("%s: %s\n", name, errno_name(-status));
	else if (status & 0x7f)
		printk("%s: ended by signal %d\n", name, status & 0x7f);
	return exec_shell_status(status);
}
