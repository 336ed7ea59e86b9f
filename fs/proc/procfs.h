/*
 * /proc and /sys: information about the kernel, its tasks and devices, as text.
 *
 * An entry is a file, a link or a directory; entries are in tables, and each table is registered in
 * a directory when the kernel starts:
 *
 *	PROCFS_SHOW(show_pid, "%d\n", task->pid)
 *
 *	static struct procfs_entry table[] = {
 *		{ "pid", .show = show_pid },
 *	};
 *	PROCFS(&procfs_task, table)			/proc/PID/pid
 */
#pragma once

#include "fs/proc/procfs_text.h"
#include "fs/vfs/filesystem.h"
#include "kernel/lib/optional.h"
#include "kernel/lib/startup.h"

struct space;
struct space_range;

/* Defines the function `show` of an entry: one call of procfs_print. */
#define PROCFS_SHOW(function, ...)                                                                 \
	static void function(struct procfs_text *text, const struct task *task)                    \
	{                                                                                          \
		procfs_print(text, __VA_ARGS__);                                                   \
	}

#define PROCFS_ENTRIES(table) .entries = table, .count = sizeof(table) / sizeof(*table)

/* Adds entries to a directory, which may itself be registered later. They stay for ever. */
void procfs_register(struct procfs_entry *directory, struct procfs_entry *entries, unsigned count);

/* Does so at start-up. */
#define PROCFS(directory, table)                                                                   \
	static void table##_register(void)                                                         \
	{                                                                                          \
		procfs_register(directory, table, sizeof(table) / sizeof(*table));                 \
	}                                                                                          \
	STARTUP(table##_register)

/* The same for a table of one entry, whose members follow. */
#define PROCFS_ENTRY(directory, table, ...)                                                        \
	static struct procfs_entry table[] = { { __VA_ARGS__ } };                                  \
	PROCFS(directory, table)

/* /proc, each task's directory, and /proc/sys/vm. */
extern struct procfs_entry procfs_root, procfs_task, procfs_sys_vm[1];

/* A tree of entries as a file system. */
struct procfs_tree {
	struct filesystem filesystem; /* with the type's name */
	const char *place;
	uint32_t magic, file_size; /* as Linux's statfs and stat say */
	struct inode *root;
	uint32_t number; /* of the file system */
	uint32_t used;	 /* inodes besides the root */
};

/* Mounts a tree at its place. */
void procfs_mount_tree(struct procfs_entry *top);

/* The pid of a task's program, which is that of its first task. */
int32_t procfs_program(const struct task *task);

/* How many elements a list has that changes with interrupts disabled. In lesson 5's kernel. */
struct list;
uint32_t procfs_length(const struct list *list);

/* Writes one line for each range of a task's memory, and `more` after it, unless that is NULL. */
void procfs_show_ranges(struct procfs_text *text, const struct task *task,
			void (*more)(struct procfs_text *text, const struct space *space,
				     const struct space_range *range));

/* ---- what only some kernels know ---- */

/* Writes the name of a range after the rest of its line, and ends the line. */
void procfs_name_range(struct procfs_text *text, const struct space *space,
		       const struct space_range *range) OPTIONAL;

/* How many bytes of objects a space shows. */
uint32_t procfs_shared(const struct space *space) OPTIONAL;

/* Writes the end of /proc/meminfo: large pages. */
void procfs_show_large(struct procfs_text *text) OPTIONAL;

/* Writes the lines of /proc/vmstat about page faults. */
void procfs_show_faults(struct procfs_text *text) OPTIONAL;

/* Pages of files on disks that are in memory, and of slabs, and of those the empty ones. */
uint32_t procfs_cached_pages(void) OPTIONAL;
uint32_t procfs_slab_pages(uint32_t *empty) OPTIONAL;

/* Adds how many sectors were read from disks and written to them. */
void procfs_traffic(uint64_t *read, uint64_t *written) OPTIONAL;
