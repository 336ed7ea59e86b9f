/* /proc/PID/fd: a task's descriptors, as symbolic links that lead to the open files themselves. */
#include <stddef.h>

#include "fs/file.h"
#include "fs/files.h"
#include "fs/proc/procfs.h"
#include "fs/vfs/vfs.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/startup.h"
#include "mm/pool.h"
#include "kernel/report/printk.h"
#include "kernel/process/family.h"

#define LINK_NUMBERS 0x80000000u /* of inodes; beyond those of /proc's other files */

/* The directory, or one of the links in it. */
struct node {
	struct inode inode;
	int32_t pid;
	uint32_t descriptor;
};

static struct pool nodes = POOL_INITIALIZER(struct node);

static const struct inode_ops directory_ops, link_ops;
static const struct file_ops directory_file_ops = { .read = vfs_read_directory };

static int make(const struct node *wanted, uint32_t mode, const struct inode_ops *ops,
		struct inode **made)
{
	struct node *node = pool_alloc(&nodes);

	if (!node)
		return -ENOMEM;
	*node = *wanted;
	inode_initialize(&node->inode, mode);
	node->inode.ops = ops;
	node->inode.file_ops = &directory_file_ops;
	node->inode.filesystem = wanted->inode.filesystem;
	node->inode.number = wanted->inode.number;
	*made = &node->inode;
	return 0;
}

static void descriptors_forget(struct inode *inode)
{
	pool_free(&nodes, inode);
}

/* The open file, or NULL: it is closed, or its task has ended. */
static struct file *file_of(int32_t pid, uint32_t descriptor)
{
	const struct process *process = process_find(pid);

	return process && process->files ? files_get(process->files, descriptor) : NULL;
}

/* ---- a link ---- */

static int descriptors_read_link(struct inode *inode, char *target, uint32_t size)
{
	const struct node *link = (const struct node *)inode;

	return procfs_link_file(file_of(link->pid, link->descriptor), target, size);
}

static int descriptors_jump(struct inode *inode, struct inode **to, struct inode **directory)
{
	const struct node *link = (const struct node *)inode;

	return procfs_jump_file(file_of(link->pid, link->descriptor), to, directory);
}

/* ---- the directory ---- */

static int descriptors_lookup(struct inode *inode, const struct name *name, struct inode **found)
{
	struct node wanted = *(const struct node *)inode;

	if (name_is(name, ".."))
		return procfs_make_task(wanted.pid, found);
	if (!procfs_number(name, &wanted.descriptor) || !file_of(wanted.pid, wanted.descriptor))
		return -ENOENT;
	wanted.inode.number = LINK_NUMBERS | (uint32_t)wanted.pid * FILES_MAX | wanted.descriptor;
	return make(&wanted, S_IFLNK | 0700, &link_ops, found);
}

/* Positions 0 and 1 are "." and "..", behind them come the descriptors. */
static bool entry_from(const struct node *directory, uint64_t position, char *text,
		       struct directory_entry *entry)
{
	*entry = (struct directory_entry){ .number = directory->inode.number,
					   .mode = S_IFDIR,
					   .next = position + 1 };
	if (position < 2) {
		entry->name = name_of("..", position + 1);
		return true;
	}
	while (position - 2 < FILES_MAX && !file_of(directory->pid, position - 2))
		position++;
	if (position - 2 >= FILES_MAX)
		return false;
	entry->name = name_of(text, snprintk(text, 12, "%u", (uint32_t)position - 2));
	entry->mode = S_IFLNK;
	entry->next = position + 1;
	return true;
}

static int descriptors_iterate(struct inode *inode, uint64_t *position, directory_visitor *visit,
			       void *context)
{
	struct directory_entry entry;
	char text[12];

	while (entry_from((const struct node *)inode, *position, text, &entry) &&
	       visit(context, &entry))
		*position = entry.next;
	return 0;
}

static const struct inode_ops directory_ops = {
	.lookup = descriptors_lookup,
	.iterate = descriptors_iterate,
	.forget = descriptors_forget,
};

static const struct inode_ops link_ops = {
	.read_link = descriptors_read_link,
	.jump = descriptors_jump,
	.forget = descriptors_forget,
};

static int descriptors_make(int32_t pid, uint32_t number, struct inode **made)
{
	struct node wanted = { .pid = pid };

	wanted.inode.number = number;
	return make(&wanted, S_IFDIR | 0500, &directory_ops, made);
}

static void descriptors_register(void)
{
	static struct procfs_entry directory = { .name = "fd", .make = descriptors_make };

	procfs_register_task(&directory);
}
STARTUP(descriptors_register)
