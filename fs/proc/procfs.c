/*
 * The trees of /proc and /sys:
 *
 *	/proc			entries		struct procfs_entry, and a directory for each task
 *	/proc/PID		threads, and those after it: the same
 *	/proc/PID/fd, fdinfo	entries with is_directory: a link, or a text, for each descriptor
 *	/proc/PID/task		a directory for each task of the program, as its own, but for this
 *	/sys/devices/hda	entries for each object: the block device hda (fs/sys/sysfs.c)
 *
 * An inode is made when it is looked up and freed with its last reference; only the roots stay.
 * After a task has ended nothing of it is found.
 */
#include "fs/proc/procfs.h"

#include <stddef.h>

#include "fs/file.h"
#include "fs/files.h"
#include "fs/path_page.h"
#include "fs/vfs/path.h"
#include "fs/vfs/vfs.h"
#include "kernel/lib/startup.h"
#include "fs/vfs/mounting.h"
#include "fs/vfs/mounts.h"
#include "fs/vfs/names.h"
#include "kernel/lib/errno.h"
#include "mm/pool.h"
#include "kernel/report/panic.h"
#include "kernel/report/printk.h"
#include "kernel/lib/string.h"
#include "kernel/process/family.h"
#include "mm/page_alloc.h"

#define ROOT	    1u
#define NUMBER	    12u		/* bytes of one in digits */
#define ENTRIES_MAX 256u	/* in a directory; after them, in the root, come the tasks */
#define DEEPER	    0x40000000u /* and those of files that are of no task, by their addresses */
#define LINKS	    0x80000000u /* numbers of the descriptors' inodes begin here */
#define THREADS	    0x20000000u /* and those of what is in /proc/PID/task */

static struct pool inodes = POOL_INITIALIZER(struct procfs_inode);
static struct procfs_entry *entries; /* of /proc; those of a task's directory follow `threads` */
static struct procfs_tree proc = { { .type = "proc" }, "/proc", .magic = 0x9fa0 };
static struct procfs_entry threads = { .name = "task", .is_directory = true };

static const struct inode_ops procfs_ops, jump_ops;
static const struct file_ops directory_ops = { .read = vfs_read_directory };

void procfs_register(struct procfs_entry *entry)
{
	entry->next = entries;
	entries = entry;
}

void procfs_register_task(struct procfs_entry *entry)
{
	entry->next = threads.next;
	threads.next = entry;
}

void procfs_register_in(struct procfs_entry *directory, struct procfs_entry *entry)
{
	entry->parent = directory;
	entry->tree = directory->tree;
	entry->next = directory->children;
	directory->children = entry;
}

static struct procfs_tree *tree_of(const struct procfs_entry *entry)
{
	return entry && entry->tree ? entry->tree : &proc;
}

/* ---- the tree ---- */

static void procfs_forget(struct inode *inode)
{
	tree_of(((struct procfs_inode *)inode)->entry)->used--;
	pool_free(&inodes, inode);
}

static uint32_t mode_of(const struct procfs_entry *entry)
{
	if (!entry || entry->is_directory)
		return S_IFDIR | (entry && entry->file && !entry->show ? 0500 : 0555);
	if (entry->link || entry->file)
		return S_IFLNK | 0777;
	return S_IFREG | (entry->store ? 0644 : 0444);
}

static void fill(struct procfs_inode *inode, int32_t pid, const struct procfs_entry *entry,
		 uint32_t mode, uint32_t number)
{
	inode_initialize(&inode->inode, mode);
	inode->inode.ops =
	    inode_is(&inode->inode, S_IFLNK) && entry->file ? &jump_ops : &procfs_ops;
	inode->inode.file_ops =
	    inode_is(&inode->inode, S_IFDIR) ? &directory_ops : &procfs_text_ops;
	inode->inode.filesystem = tree_of(entry)->number;
	inode->inode.number = number;
	inode->inode.has_fixed_mode = true; /* it would be forgotten with the inode */
	inode->inode.size = inode_is(&inode->inode, S_IFREG) ? tree_of(entry)->file_size : 0;
	inode->pid = pid;
	inode->entry = entry;
}

/* The numbers of tasks' directories, and of the files in a directory. */
static uint32_t number_of(int32_t pid, bool is_thread, uint32_t index,
			  const struct procfs_entry *entry, const void *object)
{
	if (entry && pid == 0)
		return DEEPER | (((uintptr_t)entry + (uintptr_t)object * 31) & (DEEPER - 1));
	return ((uint32_t)pid * ENTRIES_MAX + index + ROOT) | (is_thread ? THREADS : 0);
}

/* A thread has no threads. */
static const struct procfs_entry *first_entry(const struct procfs_inode *directory)
{
	return directory->entry	      ? directory->entry->children
	       : directory->is_thread ? threads.next
	       : directory->pid	      ? &threads
				      : entries;
}

/* Entry number index of a directory, its object and its name, which may be put into text. NULL
 * after the last. */
static const struct procfs_entry *entry_at(const struct procfs_inode *directory, uint32_t index,
					   const void **object, char *text, const char **name)
{
	const struct procfs_entry *entry = first_entry(directory);

	while (entry && !entry->object && index > 0) {
		entry = entry->next;
		index--;
	}
	*object = directory->object;
	*name = entry && !entry->object ? entry->name : text;
	if (entry && entry->object && !(*object = entry->object(*object, index, text)))
		return NULL;
	return entry;
}

/* The number that a name is: decimal, of up to 7 digits. False: it is none. */
static bool number_of_name(const struct name *name, uint32_t *number)
{
	*number = 0;
	if (name->length == 0 || name->length > 7 || (name->length > 1 && *name->text == '0'))
		return false;
	for (uint32_t i = 0; i < name->length; i++) {
		if (name->text[i] < '0' || name->text[i] > '9')
			return false;
		*number = *number * 10 + name->text[i] - '0';
	}
	return true;
}

int32_t procfs_program(const struct task *task)
{
	const struct process *leader = task->process ? task->process->leader : NULL;

	return leader ? leader->task->pid : task->pid;
}

/* Which task's directory has the name, here? 0: none. */
static int pid_of(const struct procfs_inode *directory, const struct name *name)
{
	uint32_t pid;
	const struct task *task = number_of_name(name, &pid) ? task_find(pid) : NULL;

	return task && (!directory->pid || procfs_program(task) == directory->pid) ? pid : 0;
}

static int make(int32_t pid, bool is_thread, const struct procfs_entry *entry, uint32_t index,
		const void *object, struct inode **found)
{
	struct procfs_inode *inode = pool_alloc(&inodes);

	if (!inode)
		return -ENOMEM;
	fill(inode, pid, entry, mode_of(entry), number_of(pid, is_thread, index, entry, object));
	inode->is_thread = is_thread;
	inode->object = object;
	tree_of(entry)->used++;
	*found = &inode->inode;
	return 0;
}

/* The open file that a link leads to; NULL: there is none, or its task has ended. */
static struct file *file_of(const struct procfs_inode *link, uint32_t descriptor)
{
	const struct process *process = process_find(link->pid);

	return process && process->files ? link->entry->file(process->files, descriptor) : NULL;
}

/* A link may be read and written as its file may. */
static uint32_t descriptor_mode(const struct procfs_entry *entry, const struct file *file)
{
	if (entry->show)
		return S_IFREG | 0444;
	return S_IFLNK | (file_readable(file) ? 0500 : 0) | (file_writable(file) ? 0300 : 0);
}

static int look_up_descriptor(struct procfs_inode *directory, const struct name *name,
			      struct inode **found)
{
	uint32_t number, of_first = LINKS | (uint32_t)directory->pid * FILES_MAX;
	const struct file *file = number_of_name(name, &number) ? file_of(directory, number) : NULL;

	if (!file)
		return -ENOENT;
	int error = make(directory->pid, directory->is_thread, directory->entry, 0, NULL, found);
	struct procfs_inode *link = (struct procfs_inode *)*found;

	if (error)
		return error;
	fill(link, directory->pid, directory->entry, descriptor_mode(directory->entry, file),
	     of_first + number);
	link->descriptor = number;
	link->inode.size = directory->entry->show ? 0 : 64; /* what Linux says of links */
	return 0;
}

/* What ".." of a directory is. */
static int look_up_parent(struct procfs_inode *directory, struct inode **found)
{
	const struct procfs_entry *entry = directory->entry;
	const struct task *task = directory->is_thread ? task_find(directory->pid) : NULL;
	const void *object = directory->object;

	if (entry && entry->object)
		object = entry->up ? entry->up(object) : NULL;
	if (entry && entry->parent && entry->parent != tree_of(entry)->top)
		return make(0, false, entry->parent, 0, object, found);
	if (entry && directory->pid)
		return make(directory->pid, directory->is_thread, NULL, 0, NULL, found);
	if (task)
		return make(procfs_program(task), false, &threads, 1, NULL, found);
	*found = inode_hold(tree_of(entry)->root);
	return 0;
}

static int look_up_object(const struct procfs_inode *directory, const struct procfs_entry *entry,
			  const struct name *wanted, struct inode **found)
{
	char name[PROCFS_NAME];
	const void *object;

	for (uint32_t i = 0; (object = entry->object(directory->object, i, name)); i++)
		if (name_is(wanted, name))
			return make(0, false, entry, 0, object, found);
	return -ENOENT;
}

static int procfs_lookup(struct inode *inode, const struct name *name, struct inode **found)
{
	struct procfs_inode *directory = (struct procfs_inode *)inode;
	const struct procfs_entry *entry = first_entry(directory);
	bool has_tasks = directory->entry ? directory->entry == &threads : !directory->pid;
	int32_t pid = has_tasks ? pid_of(directory, name) : 0;

	if (name_is(name, ".."))
		return look_up_parent(directory, found);
	if (directory->entry && directory->entry->file)
		return look_up_descriptor(directory, name, found);
	if (pid)
		return make(pid, directory->entry, NULL, 0, NULL, found);
	for (uint32_t i = 1; entry && !entry->object; entry = entry->next, i++)
		if (name_is(name, entry->name))
			return make(directory->pid, directory->is_thread, entry, i,
				    directory->object, found);
	return entry ? look_up_object(directory, entry, name, found) : -ENOENT;
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

static int procfs_read_link(struct inode *inode, char *target, uint32_t size)
{
	const struct procfs_inode *link = (const struct procfs_inode *)inode;
	struct file *file = link->entry->file ? file_of(link, link->descriptor) : NULL;

	if (file)
		return show_path(file, target, size);
	if (!link->entry->link || (link->pid && !task_find(link->pid)))
		return -ENOENT;
	int length = link->entry->link(link->object, target, size);

	return length < (int32_t)size ? length : (int32_t)size;
}

/* To the file itself, whatever name it has, or had. */
static int procfs_jump(struct inode *inode, struct inode **to, struct inode **directory)
{
	const struct procfs_inode *link = (const struct procfs_inode *)inode;
	const struct file *file = file_of(link, link->descriptor);

	if (!file && !link->entry->link)
		return -ENOENT;
	*to = inode_hold(file ? file->inode : path_root());
	*directory = file && file->directory ? inode_hold(file->directory) : NULL;
	return 0;
}

/* ---- listing ---- */

/* The lowest pid from `least` on of a program's tasks, or (0) of all programs; or 0. */
static int32_t next_pid(int32_t least, int32_t program)
{
	int32_t found = 0;

	for (const struct task *task = task_next(NULL); task; task = task_next(task))
		if (task->pid >= least && task->pid > 0 && (!found || task->pid < found) &&
		    procfs_program(task) == (program ? program : task->pid))
			found = task->pid;
	return found;
}

/* The first open descriptor from a position on, as an entry. */
static bool descriptor_from(struct procfs_inode *directory, uint64_t position, char *text,
			    struct directory_entry *entry)
{
	while (position - 2 < FILES_MAX && !file_of(directory, position - 2))
		position++;
	if (position - 2 >= FILES_MAX)
		return false;
	entry->name = name_of(text, snprintk(text, NUMBER, "%u", (uint32_t)position - 2));
	entry->mode = directory->entry->show ? S_IFREG : S_IFLNK;
	entry->next = position + 1;
	return true;
}

/* The first task's directory from a pid on, as an entry; its position is `before` more. */
static bool task_from(const struct procfs_inode *directory, int32_t least, uint32_t before,
		      char *text, struct directory_entry *entry)
{
	int32_t pid = next_pid(least, directory->pid);

	if (!pid)
		return false;
	entry->name = name_of(text, snprintk(text, NUMBER, "%d", pid));
	entry->number = number_of(pid, directory->pid, 0, NULL, NULL);
	entry->next = before + (uint64_t)pid + 1;
	return true;
}

/* Finds the entry at a position, or the first one after it, and its name. Positions 0 and 1 are
 * "." and "..", then come the files, and from ENTRIES_MAX on the tasks, by their pids; or the
 * descriptors, or the threads. */
static bool entry_from(struct procfs_inode *directory, uint64_t position, char *text,
		       struct directory_entry *entry)
{
	const struct procfs_entry *file = NULL;
	const void *object;
	const char *name;

	entry->next = position + 1;
	entry->mode = S_IFDIR;
	entry->number = directory->inode.number;
	if (position < 2) {
		entry->name = name_of("..", position + 1);
		return true;
	}
	if (directory->entry && directory->entry->file)
		return descriptor_from(directory, position, text, entry);
	if (directory->entry == &threads)
		return task_from(directory, position - 2, 2, text, entry);
	if (position < ENTRIES_MAX)
		file = entry_at(directory, position - 2, &object, text, &name);
	if (file) {
		entry->name = name_of(name, strlen(name));
		entry->mode = mode_of(file);
		entry->number =
		    number_of(directory->pid, directory->is_thread, position - 1, file, object);
		return true;
	}
	if (directory->pid || directory->entry)
		return false;
	return task_from(directory, position < ENTRIES_MAX ? 1 : position - ENTRIES_MAX,
			 ENTRIES_MAX, text, entry);
}

static int procfs_iterate(struct inode *inode, uint64_t *position, directory_visitor *visit,
			  void *context)
{
	struct procfs_inode *directory = (struct procfs_inode *)inode;
	struct directory_entry entry;
	char text[PROCFS_NAME];

	while (entry_from(directory, *position, text, &entry) && visit(context, &entry))
		*position = entry.next;
	return 0;
}

/* A shell's > wants to make a file empty before it writes. */
static int procfs_truncate(struct inode *inode, uint64_t size)
{
	return ((struct procfs_inode *)inode)->entry->store ? 0 : -EACCES;
}

static const struct inode_ops procfs_ops = {
	.lookup = procfs_lookup,
	.truncate = procfs_truncate,
	.iterate = procfs_iterate,
	.read_link = procfs_read_link,
	.forget = procfs_forget,
};

static const struct inode_ops jump_ops = {
	.jump = procfs_jump,
	.read_link = procfs_read_link,
	.forget = procfs_forget,
};

/* ---- as a file system ---- */

/* There is one tree of a type, which is at one place at a time. The root's own reference is that of
 * its mount. */
static int procfs_mount(const struct filesystem *type, struct inode *device,
			const struct mount_options *options, struct inode **mounted)
{
	struct inode *root = ((const struct procfs_tree *)type)->root;

	if (root->covers)
		return -EBUSY;
	*mounted = root;
	return 0;
}

static void procfs_statfs(struct inode *inode, struct filesystem_usage *usage)
{
	*usage = (struct filesystem_usage){
		.type = tree_of(((struct procfs_inode *)inode)->entry)->magic,
		.block_size = PAGE_SIZE,
	};
}

static int procfs_unmount(struct inode *inode)
{
	const struct procfs_tree *tree = tree_of(((struct procfs_inode *)inode)->entry);

	return tree->used > 0 || inode->references > 1 ? -EBUSY : 0;
}

void procfs_tree_register(struct procfs_tree *tree)
{
	struct procfs_inode *root = pool_alloc(&inodes);
	const struct mount_options none = { 0 };

	if (!root)
		panic("no memory for %s", tree->place);
	tree->root = &root->inode;
	tree->number = filesystem_number();
	fill(root, 0, tree->top, S_IFDIR | 0555, ROOT);
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
	procfs_tree_register(&proc);
}
STARTUP(procfs_start)
