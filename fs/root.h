/*
 * From a name to an open file: the root directory, and opening the files in it.
 *
 * Without a file system that is fs/root.c's list of files in memory. Where fs/ram/root.c is linked,
 * the same functions know directories and links. They return 0 or a negated errno, and may sleep.
 */
#pragma once

#include "fs/files.h"

/* The root, with the devices null and zero. Before anything is opened. */
void root_initialize(void);

/* Adds the files that the host provides (the setting "initramfs"), when all devices are registered.
 * An error in the archive is printed, and the files before it are kept. */
void root_unpack(void);

/* Opens a program to be run, to read it: until the file is released it cannot be written. -EACCES
 * for a file that is not regular or not executable. */
int file_open_program(const struct files *files, const char *path, struct file **file);

/* ---- a root with directories: fs/ram/root.c ---- */

/* Makes an empty one; opens what is in it, as above; and adds the devices and the host's files. */
void tree_make(void) OPTIONAL;
int tree_open(const struct files *files, const char *path, uint32_t flags, uint32_t mode,
	      struct file **file) OPTIONAL;
int tree_open_program(const struct files *files, const char *path, struct file **file) OPTIONAL;
void tree_fill(void) OPTIONAL;

/* ---- opening ---- */

/* In fs/root.c: a file of the list, or a device. */
int root_open(const char *path, uint32_t flags, struct file **file);

/* Opens what has this name: the path begins at the working directory of `files`. flags and mode are
 * those of open(2). *file gets a reference. -ENOENT, -EEXIST, -EROFS, -ENOSPC, -ENFILE, ... */
static inline int file_open(const struct files *files, const char *path, uint32_t flags,
			    uint32_t mode, struct file **file)
{
	return tree_open ? tree_open(files, path, flags, mode, file) : root_open(path, flags, file);
}
