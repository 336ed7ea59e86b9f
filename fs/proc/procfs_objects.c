/*
 * /proc/objects, which Linux does not have: how many structures of each kind are allocated, so that
 * a leak is visible.
 */
#include "fs/pipe.h"
#include "fs/proc/procfs.h"
#include "fs/ram/ramfs.h"
#include "kernel/task/task.h"

static void show_objects(struct procfs_text *text, const struct task *unused)
{
	uint32_t tasks = 0;

	for (const struct task *each = task_next(NULL); each; each = task_next(each))
		tasks += each->pid != 0;

	procfs_print(text, "tasks %u\nfiles %u\npipes %u\n", tasks, file_pool.used, pipe_pool.used);
	procfs_print(text, "inodes %u\nentries %u\npages %u\n", ramfs_inodes.used,
		     ramfs_entries.used, ramfs_counts.pages);
}

PROCFS_ENTRY(&procfs_root, objects, "objects", .show = show_objects)
