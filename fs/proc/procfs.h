/* /proc and /sys: information about the kernel, its tasks and devices, as text. */
#pragma once

#include "fs/proc/procfs_text.h"
#include "fs/vfs/filesystem.h"
#include "kernel/lib/optional.h"

struct space;
struct space_range;

/* A tree of entries, which is mounted at start-up. */
struct procfs_tree {
	struct filesystem filesystem; /* with the type's name */
	const char *place;
	uint32_t magic, file_size; /* as Linux's statfs and stat say */
	struct procfs_entry *top;
	struct inode *root;
	uint32_t number; /* of the file system */
	uint32_t used;	 /* inodes besides the root */
};

void procfs_tree_register(struct procfs_tree *tree);

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

/* Adds how many sectors were read from disks and written to them. */
void procfs_traffic(uint64_t *read, uint64_t *written) OPTIONAL;

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

/* Adds an entry to a directory, which is registered itself. */
void procfs_register_in(struct procfs_entry *directory, struct procfs_entry *entry);
