/* The texts of files in /proc and /sys, and the entries that they are of. */
#pragma once

#include "fs/vfs/inode.h"

struct file;
struct files;
struct procfs_entry;
struct procfs_tree;
struct task;

#define PROCFS_LINE 64u
#define PROCFS_NAME 32u /* bytes of an object's name, with its NUL */

/* A text that is being written; it is made when a file is opened. */
struct procfs_text {
	char *bytes;
	uint32_t length, size; /* what does not fit is lost */
	const void *object;    /* that it is about */
};

void procfs_print(struct procfs_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* One of several objects that have the same entries: a task, a descriptor, a device. */
struct procfs_object {
	uint32_t number;
	bool is_wanted; /* this number: it need not be one that is listed */
	const void *it;
	bool has_name; /* which is not its number */
	char name[PROCFS_NAME];
};

/* An inode's place in the tree. */
struct procfs_node {
	const struct procfs_entry *entry;
	int32_t pid;	    /* 0: not of a task */
	bool is_thread;	    /* of a task, below /proc/PID/task */
	const void *object; /* that it is about, or NULL */
};

/* All functions are called by tasks that may sleep. */
struct procfs_entry {
	const char *name; /* NULL: that of each object */

	/* A file: writes its text, or has it (a line without its newline). task is NULL for a file
	 * that is in no task's directory. `order`: there is memory for 2^order pages. */
	void (*show)(struct procfs_text *text, const struct task *task);
	const char *text;
	unsigned order;
	/* Gets what is written to the file, cut to PROCFS_LINE - 1 bytes, without its newline.
	 * Returns 0 or a negated errno. NULL: the file is only for reading. */
	int (*store)(const void *object, const char *line);

	/* A symbolic link: has its target, or writes it as snprintk does. */
	const char *target;
	int (*link)(const void *object, char *target, uint32_t size);
	/* A symbolic link to an open file of a task, whatever name that has; the descriptor is the
	 * entry's object. NULL: there is none, and the link leads to the root if it has a target.
	 */
	struct file *(*file)(const struct files *files, uint32_t descriptor);

	/* A directory: the entries that it begins with (PROCFS_ENTRIES). */
	struct procfs_entry *entries;
	unsigned count;
	uint32_t permissions; /* of a directory; 0: 0555 */

	/* An entry for each of several objects, one at most in a directory: finds the object of the
	 * lowest number from object->number on; it may fill in a name. False: there is none. `up`
	 * is from an object to that of the directory; NULL: it has none. */
	bool (*each)(const struct procfs_node *directory, struct procfs_object *object);
	const void *(*up)(const void *object);

	struct procfs_tree *tree; /* of which this is the root */

	/* Since it is registered. */
	struct procfs_entry *parent, *children, *next;
	uint32_t number;
};

struct procfs_inode {
	struct inode inode; /* first: the two have one address */
	struct procfs_node node;
};

static inline const struct procfs_node *procfs_node(const struct inode *inode)
{
	return &((const struct procfs_inode *)inode)->node;
}

/* Of a file with a text. */
extern const struct file_ops procfs_text_ops;
