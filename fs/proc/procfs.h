/* /proc: information about the kernel and its tasks, as text. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fs/vfs/inode.h"

struct file;
struct files;
struct space;
struct space_range;
struct task;

#define PROCFS_LINE 64u

/* A text that is being written; it is made when a file is opened. */
struct procfs_text {
	char *bytes;
	uint32_t length, size; /* what does not fit is lost */
	uint32_t descriptor;   /* that it is about */
};

void procfs_print(struct procfs_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* One of /proc's files, or one of those in each task's directory. */
struct procfs_entry {
	const char *name;
	/* Writes the text. task is NULL for a file of /proc itself. */
	void (*show)(struct procfs_text *text, const struct task *task);
	/* Of a symbolic link, instead: writes its target as snprintk does. */
	int (*link)(char *target, uint32_t size);
	/* Of a symbolic link that leads to an open file, or of a directory of those (with `show`:
	 * of texts), one for each descriptor. NULL: there is none, and the link leads to the root
	 * if it has `link`. */
	struct file *(*file)(const struct files *files, uint32_t descriptor);
	bool is_directory;
	/* Gets what is written to the file, cut to PROCFS_LINE - 1 bytes, without its newline.
	 * Returns 0 or a negated errno. NULL: the file is only for reading. */
	int (*store)(const char *line);
	unsigned order;				/* the text has up to 2^order pages */
	struct procfs_entry *children, *parent; /* of a directory of files like this, or in one */
	struct procfs_entry *next;
};

/* What is known of programs' memory from lesson 6 on; NULL before. */
struct procfs_memory {
	/* Writes the name of a range after the rest of its line, and ends the line. */
	void (*name)(struct procfs_text *text, const struct space *space,
		     const struct space_range *range);
	/* How many bytes of objects a space shows. */
	uint32_t (*shared)(const struct space *space);
	/* Writes the end of /proc/meminfo: large pages. */
	void (*large)(struct procfs_text *text);
	/* Writes the lines of /proc/vmstat about page faults. */
	void (*faults)(struct procfs_text *text);
	/* How many pages of files on disks are in memory. */
	uint32_t (*cached)(void);
};

extern const struct procfs_memory *procfs_memory;

/* Adds how many sectors were read from disks and written to them. NULL: there are no disks. */
extern void (*procfs_traffic)(uint64_t *read, uint64_t *written);

/* Writes one line for each range of a task's memory, and `more` after it, unless that is NULL. */
void procfs_show_ranges(struct procfs_text *text, const struct task *task,
			void (*more)(struct procfs_text *text, const struct space *space,
				     const struct space_range *range));

/* /proc/sys/vm. */
extern struct procfs_entry procfs_sys_vm;

/* The pid of a task's program, which is that of its first task. */
int32_t procfs_program(const struct task *task);

/* Add a file to /proc, or to each task's directory. The structure must live as long as the kernel.
 */
void procfs_register(struct procfs_entry *entry);
void procfs_register_task(struct procfs_entry *entry);

/* Adds a file to a directory, which is registered itself. */
void procfs_register_in(struct procfs_entry *directory, struct procfs_entry *entry);
