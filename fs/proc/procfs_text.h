/* The files of /proc and /sys, and the texts in them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fs/vfs/inode.h"

struct file;
struct files;
struct procfs_tree;
struct task;

#define PROCFS_LINE 64u
#define PROCFS_NAME 32u /* bytes of an object's name, with its NUL */

/* A text that is being written; it is made when a file is opened. */
struct procfs_text {
	char *bytes;
	uint32_t length, size; /* what does not fit is lost */
	uint32_t descriptor;   /* that it is about; or the object: */
	const void *object;
};

void procfs_print(struct procfs_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* One of /proc's files, one of those in each task's directory, or one of /sys. It may be there for
 * each of several objects, such as devices. */
struct procfs_entry {
	const char *name;
	/* Writes the text. task is NULL for a file that is in no task's directory. */
	void (*show)(struct procfs_text *text, const struct task *task);
	const char *text; /* or the text itself */
	/* Of a symbolic link, instead: writes its target as snprintk does. */
	int (*link)(const void *object, char *target, uint32_t size);
	/* Of a symbolic link that leads to an open file, or of a directory of those (with `show`:
	 * of texts), one for each descriptor. NULL: there is none, and the link leads to the root
	 * if it has `link`. */
	struct file *(*file)(const struct files *files, uint32_t descriptor);
	bool is_directory;
	/* Gets what is written to the file, cut to PROCFS_LINE - 1 bytes, without its newline.
	 * Returns 0 or a negated errno. NULL: the file is only for reading. */
	int (*store)(const void *object, const char *line);
	unsigned order;				/* the text has up to 2^order pages */
	struct procfs_entry *children, *parent; /* of a directory of files like this, or in one */
	struct procfs_entry *next;

	/* An entry for each of several objects, the last in its directory: of number `index` this
	 * writes the name, of PROCFS_NAME bytes. NULL: there are no more. `of` is the directory's
	 * object, which other entries in it get as it is, and which `up` finds (NULL: it has none).
	 */
	const void *(*object)(const void *of, uint32_t index, char *name);
	const void *(*up)(const void *object);
	struct procfs_tree *tree; /* that it is in; NULL: /proc */
};

struct procfs_inode {
	struct inode inode;
	int32_t pid;			  /* 0: not of a task */
	const struct procfs_entry *entry; /* NULL: the root, or a task's directory */
	const void *object;		  /* of several for which the entry is there */
	uint32_t descriptor;		  /* of a link or a text in /proc/PID/fd or fdinfo */
	bool is_thread;			  /* of a task, below /proc/PID/task */
};

/* Of a file with a text. */
extern const struct file_ops procfs_text_ops;
