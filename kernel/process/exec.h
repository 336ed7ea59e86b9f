/* exec: makes a task run the program in an ELF file. */
#pragma once

#include "kernel/cpu/trap.h"
#include "kernel/process/exec_strings.h"

/*
 * Makes the current task run the program at path: a static ELF executable for the i386, fixed or
 * position-independent. Fills in the frame for the first instruction. May change the strings; the
 * caller keeps them.
 *
 * Returns 0; or the negated errno of opening and reading the file, -EACCES, -ENOEXEC for any other
 * file, -ENOMEM, -E2BIG, and the task is as it was. If memory runs out after the point of no
 * return, the task ends as if by SIGKILL.
 */
int exec(const char *path, struct exec_strings *strings, struct trap_frame *frame);

/* For files of other kinds: called with an image that elf_check has refused with -ENOEXEC. It
 * returns what exec returns, and may call exec with another path. */
struct elf_image;
int exec_other_kind(struct elf_image *image, const char *path, struct exec_strings *strings,
		    struct trap_frame *frame) OPTIONAL;

/* Names the current task after the last part of the path. */
void exec_set_name(const char *path);

/* The same as exec for a program that the kernel itself starts: words[0] is its path, its
 * environment is a plain one, and descriptors 0, 1 and 2 are the terminal. Makes the task's table
 * of files, if it has none. */
int exec_at_terminal(int count, char *const words[], struct trap_frame *frame);

/* The status that a shell gives a program's end, which is a wait status, or the negated errno of
 * its start: its exit code, 128 and the signal, 127 if there is no such file, 126 if it cannot be
 * run. exec_report also prints what a shell would. */
int exec_shell_status(int32_t status);
int exec_report(const char *name, int32_t status);
