/*
 * The trees of /proc and /sys, from entries in tables:
 *
 *	/proc			procfs_root: files, and a directory for each program
 *	/proc/PID		procfs_task: files, `task`, and
 *	/proc/PID/fd, fdinfo	a link, or a text, for each descriptor (fs/proc/procfs_tasks.c)
 *	/proc/PID/task/TID	procfs_task again, without `task`: a directory for each thread
 *	/sys/devices/hda	entries for each block device (fs/sys/sysfs.c)
 *
 * Tasks, descriptors and devices are objects: one entry in a directory stands for all of them
 * (`each`). A node says which entry an inode is of, and for which object. Inodes are made when they
 * are looked up and freed with their last reference; only the roots stay. After a task has ended
 * nothing of it is found.
 *
 * The files of this folder: procfs_text.c has open, read and write of a text; the others have
 * tables of entries, each with the formats of proc(5) unless it says otherwise.
 */
#include "fs/proc/procfs.h"

#include "fs/path_page.h"
#include "fs/vfs/mounting.h"
#include "fs/vfs/names.h"
#include "fs/vfs/path.h"
#include "fs/vfs/vfs.h"
#include "kernel/process/family.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"
#include "mm/pool.h"

/* How numbers of inodes are given out: see number_of_node. */
#define ROOT	    1u		/* the number of a root's inode, as Linux has it */
#define OBJECTS	    256u	/* positions in a directory: objects begin here, by their numbers */
#define ENTRIES	    256u	/* the most in all directories */
#define DESCRIPTORS 0x80000000u /* numbers of the descriptors' inodes begin here */

static bool next_task(const struct procfs_node *directory, struct procfs_object *object);

static struct pool inodes = POOL_INITIALIZER(struct procfs_inode);
static struct procfs_tree proc = { { .type = "proc" }, "/proc", .magic = 0x9fa0 };

/* What is fixed: a program's directory in the root, then its threads' in `task`. */
static struct procfs_entry threads, thread = { .each = next_task, .parent = &threads };
static struct procfs_entry threads = { "task", .parent = &procfs_task, .children = &thread,
				       .number = ROOT + 2 };
struct procfs_entry procfs_task = {
	.each = next_task, .parent = &procfs_root, .children = &threads, .number = ROOT + 1
};
struct procfs_entry procfs_root = { .tree = &proc, .children = &procfs_task, .number = ROOT };

static const struct inode_ops procfs_ops, jump_ops;
static const struct file_ops directory_ops = { .read = vfs_read_directory };

/* Numbers are given in the order of registration, and entries of entries get theirs at once: they
 * stay below ENTRIES, so that number_of_node can put a pid above them. The entry for each object
 * stays the last of its directory. */
void procfs_register(struct procfs_entry *directory, struct procfs_entry *entries, unsigned count)
{
	static uint32_t last = ROOT + 2;
	struct procfs_entry **end = &directory->children;

	while (*end && !(*end)->each)
		end = &(*end)->next;
	for (struct procfs_entry *entry = entries; entry < entries + count; entry++) {
		entry->parent = directory;
		entry->number = ++last;
		ASSERT(last < ENTRIES);
		entry->next = *end;
		*end = entry;
		end = &entry->next;
		procfs_register(entry, entry->entries, entry->count);
	}
}

/* ---- nodes ---- */

/* Only the topmost entry knows its tree. */
static struct procfs_tree *tree_of(const struct procfs_entry *entry)
{
	while (entry->parent)
		entry = entry->parent;
	return entry->tree;
}

/* A thread has no threads. */
static const struct procfs_entry *first_entry(const struct procfs_node *directory)
{
	bool is_of_thread = directory->entry == &procfs_task && directory->is_thread;

	return is_of_thread ? threads.next : directory->entry->children;
}

/* The node of an entry of this directory; of an entry for each object, of that object. A child is
 * of the same task as its directory, or is itself the task. */
static struct procfs_node child_of(const struct procfs_node *directory,
				   const struct procfs_entry *entry,
				   const struct procfs_object *object)
{
	struct procfs_node node = *directory;

	node.entry = entry;
	if (entry == &procfs_task || entry == &thread) {
		node.entry = &procfs_task;
		node.is_thread = entry == &thread;
		node.pid = object->number;
	} else if (entry->each) {
		node.object = object->it;
	}
	return node;
}

/* The directory that a node is in; that of an ended thread is the root. */
static struct procfs_node parent_of_node(struct procfs_node node)
{
	const struct task *task = task_find(node.pid);

	if (node.entry != &procfs_task) {
		if (node.entry->each)
			node.object = node.entry->up ? node.entry->up(node.object) : NULL;
		node.entry = node.entry->parent;
	} else if (node.is_thread && task) {
		node = (struct procfs_node){ &threads, .pid = procfs_program(task) };
	} else {
		node = (struct procfs_node){ .entry = &procfs_root };
	}
	return node;
}

/* The open file that a link leads to; NULL: there is none, or its task has ended. */
static struct file *file_of_link(const struct procfs_node *link)
{
	const struct process *process = link->entry->file ? process_find(link->pid) : NULL;

	return process && process->files
		   ? link->entry->file(process->files, (uintptr_t)link->object)
		   : NULL;
}

/* A descriptor's link may be read and written as its file may. */
static uint32_t mode_of_node(const struct procfs_node *node)
{
	const struct procfs_entry *entry = node->entry;
	const struct file *file = entry->each ? file_of_link(node) : NULL;

	if (entry->children)
		return S_IFDIR | (entry->permissions ? entry->permissions : 0555);
	if (file)
		return S_IFLNK | (file_readable(file) ? 0500 : 0) |
		       (file_writable(file) ? 0300 : 0);
	if (entry->target || entry->link || entry->file)
		return S_IFLNK | 0777;
	return S_IFREG | (entry->store ? 0644 : 0444);
}

/* Each inode of a tree has its own: what compares files by it (find, tar) relies on that. A pid and
 * a descriptor have 31 bits together. */
static uint32_t number_of_node(const struct procfs_node *node)
{
	uint32_t pid = node->pid, object = (uintptr_t)node->object;

	if (pid && node->entry->each && node->entry != &procfs_task)
		return DESCRIPTORS | (pid * FILES_MAX + object) * 2 | !node->entry->file;
	return (pid * 2 + node->is_thread) * ENTRIES + node->entry->number + object * 31;
}

/* ---- inodes ---- */

/* With one reference. It counts as used until it is forgotten. -ENOMEM. */
static int procfs_make_inode(struct procfs_node node, struct inode **made)
{
	struct procfs_inode *inode = pool_alloc(&inodes);
	struct procfs_tree *tree = tree_of(node.entry);
	uint32_t mode = mode_of_node(&node);

	if (!inode)
		return -ENOMEM;
	inode_initialize(&inode->inode, mode);
	*made = &inode->inode;
	(*made)->ops = inode_is(*made, S_IFLNK) && node.entry->file ? &jump_ops : &procfs_ops;
	(*made)->file_ops = inode_is(*made, S_IFDIR) ? &directory_ops : &procfs_text_ops;
	(*made)->filesystem = tree->number;
	(*made)->number = number_of_node(&node);
	(*made)->has_fixed_mode = true; /* it would be forgotten with the inode */
	if (inode_is(*made, S_IFREG))
		(*made)->size = tree->file_size;
	else if (inode_is(*made, S_IFLNK) && node.entry->each && node.entry->file)
		(*made)->size = 64; /* what Linux says of a descriptor's link */
	inode->node = node;
	tree->used++;
	return 0;
}

/* Nothing else knows the inode: the next look-up makes another one with the same number. */
static void procfs_forget(struct inode *inode)
{
	tree_of(procfs_node(inode)->entry)->used--;
	pool_free(&inodes, inode);
}

/* The number that a name is, or 0: the search for an object begins there. */
static uint32_t number_in(const struct name *name)
{
	uint32_t number = 0, i = 0;

	for (; i < name->length && name->text[i] >= '0' && name->text[i] <= '9'; i++)
		number = number * 10 + name->text[i] - '0';
	return i == name->length ? number : 0;
}

/* Finds an entry's next object, from object->number on, and its name: its number, unless `each` has
 * given it another one. False: there is none. */
static bool next_object(const struct procfs_entry *entry, const struct procfs_node *directory,
			struct procfs_object *object)
{
	object->name[0] = '\0';
	if (!entry->each(directory, object))
		return false;
	object->has_name = object->name[0];
	if (!object->has_name)
		snprintk(object->name, sizeof(object->name), "%u", object->number);
	return true;
}

/* Fixed names first; then the search for an object, from the number that the name is. -ENOENT,
 * -ENOMEM. */
static int procfs_lookup(struct inode *inode, const struct name *name, struct inode **found)
{
	const struct procfs_node *directory = procfs_node(inode);
	const struct procfs_entry *entry = first_entry(directory);
	struct procfs_object object = { .number = number_in(name), .is_wanted = true };

	if (name_is(name, "..")) {
		const struct procfs_node parent = parent_of_node(*directory);

		if (parent.entry->parent)
			return procfs_make_inode(parent, found);
		*found = inode_hold(parent.entry->tree->root);
		return 0;
	}
	for (; entry && !entry->each; entry = entry->next)
		if (name_is(name, entry->name))
			return procfs_make_inode(child_of(directory, entry, NULL), found);
	for (; entry && next_object(entry, directory, &object); object.number++) {
		if (name_is(name, object.name))
			return procfs_make_inode(child_of(directory, entry, &object), found);
		if (!object.has_name)
			break; /* the object of this number would have been found first */
	}
	return -ENOENT;
}

/* ---- tasks ---- */

int32_t procfs_program(const struct task *task)
{
	const struct process *leader = task->process ? task->process->leader : NULL;

	return leader ? leader->task->pid : task->pid;
}

/* The lowest pid from object->number on: in /proc of all programs, below /proc/PID of that
 * program's tasks. /proc/TID is not listed, but is there (proc(5)). */
static bool next_task(const struct procfs_node *directory, struct procfs_object *object)
{
	uint32_t found = UINT32_MAX;
	int32_t program = directory->pid; /* 0: all */

	for (const struct task *task = task_next(NULL); task; task = task_next(task)) {
		uint32_t pid = task->pid;

		bool is_hidden = procfs_program(task) != (program ? program : task->pid);

		if (is_hidden && (program || !object->is_wanted || pid != object->number))
			continue;
		if (pid > 0 && pid >= object->number && pid < found)
			found = pid;
	}
	object->number = found;
	return found != UINT32_MAX;
}

/* ---- links ---- */

/* Writes a file's path without its NUL, cut to size. Returns its length. */
static int show_path(struct file *file, char *target, uint32_t size)
{
	char *path = path_page();

	if (!path)
		return -ENOMEM;
	int length = vfs_file_path(file, path, PATH_MAX);

	if (length > 0) {
		length = (uint32_t)length <= size ? length - 1 : (int32_t)size;
		memcpy(target, path, length);
	}
	path_page_free(path);
	return length;
}

/* For readlink(2), which cuts the text to size without an error; what follows a link to an open
 * file jumps instead. -ENOENT when the task, or its file, is gone. */
static int procfs_read_link(struct inode *inode, char *target, uint32_t size)
{
	const struct procfs_node *link = procfs_node(inode);
	struct file *file = file_of_link(link);

	if (file)
		return show_path(file, target, size);
	if ((!link->entry->link && !link->entry->target) || (link->pid && !task_find(link->pid)))
		return -ENOENT;
	int length = link->entry->target ? snprintk(target, size, "%s", link->entry->target)
					 : link->entry->link(link->object, target, size);

	return length < (int32_t)size ? length : (int32_t)size;
}

/* To the file itself, whatever name it has, or had. */
static int procfs_jump(struct inode *inode, struct inode **to, struct inode **directory)
{
	const struct file *file = file_of_link(procfs_node(inode));

	if (!file && !procfs_node(inode)->entry->target)
		return -ENOENT;
	*to = inode_hold(file ? file->inode : path_root());
	*directory = file && file->directory ? inode_hold(file->directory) : NULL;
	return 0;
}

/* ---- listing ---- */

/* Finds the entry at a position, or the first one after it, and its name, which may be put into the
 * object. Positions 0 and 1 are "." and "..", then come the entries, then the objects. */
static bool entry_from(const struct procfs_inode *inode, uint64_t position,
		       struct procfs_object *object, struct directory_entry *found)
{
	const struct procfs_entry *entry = first_entry(&inode->node);

	*found = (struct directory_entry){ name_of("..", position + 1), inode->inode.number,
					   S_IFDIR, position + 1 };
	if (position < 2)
		return true;
	for (uint64_t at = 2; entry && !entry->each && at < position; at++)
		entry = entry->next;
	if (entry && entry->each) {
		object->number = position < OBJECTS ? 0 : position - OBJECTS;
		entry = next_object(entry, &inode->node, object) ? entry : NULL;
		position = OBJECTS + object->number;
	}
	if (!entry)
		return false;
	const struct procfs_node node = child_of(&inode->node, entry, object);
	const char *name = entry->each ? object->name : entry->name;

	*found = (struct directory_entry){ name_of(name, strlen(name)), number_of_node(&node),
					   mode_of_node(&node), position + 1 };
	return true;
}

/* The visitor may refuse an entry for want of room: then *position stays there, and the next call
 * begins with it. What has come or gone meanwhile moves no other entry's position, since objects
 * have their own numbers. */
static int procfs_iterate(struct inode *inode, uint64_t *position, directory_visitor *visit,
			  void *context)
{
	struct procfs_object object = { .is_wanted = false };
	struct directory_entry entry;

	while (entry_from((struct procfs_inode *)inode, *position, &object, &entry) &&
	       visit(context, &entry))
		*position = entry.next;
	return 0;
}

/* A shell's > wants to make a file empty before it writes: that changes nothing, and is allowed
 * where writing is. */
static int procfs_truncate(struct inode *inode, uint64_t size)
{
	return procfs_node(inode)->entry->store ? 0 : -EACCES;
}

static const struct inode_ops procfs_ops = {
	.lookup = procfs_lookup,
	.truncate = procfs_truncate,
	.iterate = procfs_iterate,
	.read_link = procfs_read_link,
	.forget = procfs_forget,
};

/* Of links to open files. Other links are read, and their text is walked. */
static const struct inode_ops jump_ops = {
	.jump = procfs_jump,
	.read_link = procfs_read_link,
	.forget = procfs_forget,
};

/* ---- as a file system ---- */

/* There is one tree of a type, which is at one place at a time: -EBUSY, where Linux would show it
 * at both. The root's own reference is that of its mount. */
static int procfs_mount(const struct filesystem *type, struct inode *device,
			const struct mount_options *options, struct inode **mounted)
{
	struct inode *root = ((const struct procfs_tree *)type)->root;

	if (root->covers)
		return -EBUSY;
	*mounted = root;
	return 0;
}

/* It has neither blocks nor inodes that could be used up. */
static void procfs_statfs(struct inode *inode, struct filesystem_usage *usage)
{
	*usage = (struct filesystem_usage){
		.type = tree_of(procfs_node(inode)->entry)->magic,
		.block_size = PAGE_SIZE,
	};
}

/* The root stays, for the next mount. An inode that is open, or a directory that a process is in,
 * keeps the tree: -EBUSY, as umount(2) has it. */
static int procfs_unmount(struct inode *inode)
{
	return tree_of(procfs_node(inode)->entry)->used > 0 || inode->references > 1 ? -EBUSY : 0;
}

/* At start-up: without memory for a root the kernel ends; without a place for it, it goes on. */
void procfs_mount_tree(struct procfs_entry *top)
{
	struct procfs_tree *tree = top->tree;
	const struct mount_options none = { 0 };

	tree->number = filesystem_number();
	if (procfs_make_inode((struct procfs_node){ .entry = top }, &tree->root) != 0)
		panic("no memory for %s", tree->place);
	tree->used = 0;
	tree->root->number = ROOT;
	tree->root->links = 2;
	tree->filesystem.mount = procfs_mount;
	tree->filesystem.statfs = procfs_statfs;
	tree->filesystem.unmount = procfs_unmount;
	filesystem_register(&tree->filesystem);
	vfs_make(path_root(), tree->place, S_IFDIR | 0555, 0);
	if (vfs_mount(path_root(), "none", tree->filesystem.type, tree->place, &none) != 0)
		printk("files: %s is not a directory, and stays as it is\n", tree->place);
}

static void procfs_start(void)
{
	procfs_mount_tree(&procfs_root);
}
STARTUP(procfs_start)
