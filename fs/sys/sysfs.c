/*
 * The tree of /sys, as far as it is about block devices:
 *
 *	/sys/devices/hda/		a drive: its files, and
 *		queue/			those of its queue
 *		hda1/			a partition
 *	/sys/block/hda			-> ../devices/hda
 *	/sys/class/block/hda1		-> ../../devices/hda/hda1
 *	/sys/dev/block/3:1		-> ../../devices/hda/hda1
 *
 * There is no tree in memory: `child` finds entry number n of a directory, whatever that is now,
 * and all else counts on from 0. A path has few entries to count, and is looked at by tools that
 * people type. An inode is made when it is looked up and freed with its last reference; only the
 * root stays. A file's text is made for each read: a reader that takes it byte by byte may get
 * parts of two, as on Linux.
 */
#include "fs/sys/attributes.h"

#include <stddef.h>

#include "fs/file.h"
#include "fs/vfs/mounting.h"
#include "fs/vfs/path.h"
#include "fs/vfs/vfs.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/startup.h"
#include "kernel/lib/string.h"
#include "kernel/report/printk.h"
#include "mm/page_table.h"
#include "mm/pool.h"

#define NAME 32u /* bytes of the longest name, with its NUL */

enum kind { ROOT, BLOCK, CLASS, CLASS_BLOCK, DEV, DEV_BLOCK, DEVICES, DEVICE, QUEUE, FILE, LINK };

struct node {
	enum kind kind;
	unsigned depth;			   /* of a link: directories above it, without the root */
	const struct block_device *device; /* from DEVICE on */
	const struct sysfs_attribute *attribute; /* of a file */
};

struct sysfs_inode {
	struct inode inode;
	struct node node;
};

static struct pool inodes = POOL_INITIALIZER(struct sysfs_inode);
static struct sysfs_inode root;

static const struct inode_ops sysfs_ops;
static const struct file_ops text_ops;
static const struct file_ops directory_ops = { .read = vfs_read_directory };

/* ---- what is in a directory ---- */

static const struct {
	enum kind parent, kind;
	const char *name;
} folders[] = {
	{ ROOT, BLOCK, "block" },     { ROOT, CLASS, "class" },	       { ROOT, DEV, "dev" },
	{ ROOT, DEVICES, "devices" }, { CLASS, CLASS_BLOCK, "block" }, { DEV, DEV_BLOCK, "block" },
};
#define FOLDERS (sizeof(folders) / sizeof(folders[0]))

/* Device number index: of those of a drive, or (NULL) of all drives, or (`all`) of all. */
static const struct block_device *device_at(uint32_t index, const struct block_device *whole,
					    bool all)
{
	for (const struct block_device *each = block_first(); each; each = each->next)
		if ((all || each->whole == whole) && index-- == 0)
			return each;
	return NULL;
}

/* Attribute number index of those in a place; subtracts from *index how many there were. */
static const struct sysfs_attribute *attribute_at(uint32_t *index, enum sysfs_place place)
{
	for (const struct sysfs_attribute *each = sysfs_attributes; each->name; each++)
		if ((each->places & place) && (*index)-- == 0)
			return each;
	return NULL;
}

static bool folder_child(const struct node *directory, uint32_t index, char *name,
			 struct node *child)
{
	for (unsigned i = 0; i < FOLDERS; i++)
		if (folders[i].parent == directory->kind && index-- == 0) {
			snprintk(name, NAME, "%s", folders[i].name);
			*child = (struct node){ .kind = folders[i].kind };
			return true;
		}
	return false;
}

/* A device, or a link to one, by its name or its number. */
static bool device_child(const struct node *directory, uint32_t index, char *name,
			 struct node *child)
{
	bool all = directory->kind == CLASS_BLOCK || directory->kind == DEV_BLOCK;
	const struct block_device *device = device_at(index, directory->device, all);

	if (!device)
		return false;
	bool is_link = all || directory->kind == BLOCK;

	*child = (struct node){ is_link ? LINK : DEVICE, all ? 2 : 1, device, NULL };
	if (directory->kind == DEV_BLOCK)
		snprintk(name, NAME, "%u:%u", device->number >> 8, device->number & 0xff);
	else
		snprintk(name, NAME, "%s", device->name);
	return true;
}

/* Of a device's directory, or of its queue's: first the files. */
static bool attribute_child(const struct node *directory, uint32_t index, char *name,
			    struct node *child)
{
	const struct block_device *device = directory->device;
	const struct sysfs_attribute *attribute =
	    attribute_at(&index, directory->kind == QUEUE ? SYSFS_QUEUE
				 : device->whole	  ? SYSFS_PARTITION
							  : SYSFS_DRIVE);

	*child = (struct node){ FILE, 0, device, attribute };
	if (attribute) {
		snprintk(name, NAME, "%s", attribute->name);
		return true;
	}
	if (directory->kind == QUEUE || device->whole)
		return false;
	child->kind = QUEUE;
	if (index == 0)
		snprintk(name, NAME, "queue");
	return index == 0 || device_child(directory, index - 1, name, child);
}

/* Entry number index of a directory: its name, of up to NAME bytes, and what it is. False
 * after the last. */
static bool child_at(const struct node *directory, uint32_t index, char *name, struct node *child)
{
	switch (directory->kind) {
	case ROOT:
	case CLASS:
	case DEV:
		return folder_child(directory, index, name, child);
	case DEVICE:
	case QUEUE:
		return attribute_child(directory, index, name, child);
	default:
		return device_child(directory, index, name, child);
	}
}

static struct node parent_of(const struct node *directory)
{
	struct node parent = { .kind = ROOT };

	for (unsigned i = 0; i < FOLDERS; i++)
		if (folders[i].kind == directory->kind)
			parent.kind = folders[i].parent;
	if (directory->kind == QUEUE)
		parent = (struct node){ DEVICE, 0, directory->device, NULL };
	if (directory->kind == DEVICE)
		parent = (struct node){ directory->device->whole ? DEVICE : DEVICES, 0,
					directory->device->whole, NULL };
	return parent;
}

/* ---- inodes ---- */

/* Different for all but links. */
static uint32_t number_of(const struct node *node)
{
	uint32_t attribute = node->attribute ? node->attribute - sysfs_attributes : 0;

	return (node->kind + 1) << 26 | attribute << 16 | (node->device ? node->device->number : 0);
}

static uint32_t mode_of(const struct node *node)
{
	if (node->kind == LINK)
		return S_IFLNK | 0777;
	if (node->kind == FILE)
		return S_IFREG | (node->attribute->store ? 0644 : 0444);
	return S_IFDIR | 0555;
}

static void fill(struct sysfs_inode *inode, const struct node *node)
{
	inode_initialize(&inode->inode, mode_of(node));
	inode->node = *node;
	inode->inode.ops = &sysfs_ops;
	inode->inode.file_ops = node->kind == FILE ? &text_ops : &directory_ops;
	inode->inode.filesystem = root.inode.filesystem;
	inode->inode.number = number_of(node);
	inode->inode.size = node->kind == FILE ? PAGE_SIZE : 0; /* as Linux says */
}

static void sysfs_forget(struct inode *inode)
{
	pool_free(&inodes, inode);
}

static int make(const struct node *node, struct inode **found)
{
	if (node->kind == ROOT) {
		*found = inode_hold(&root.inode);
		return 0;
	}
	struct sysfs_inode *inode = pool_alloc(&inodes);

	if (!inode)
		return -ENOMEM;
	fill(inode, node);
	*found = &inode->inode;
	return 0;
}

static const struct node *node_of(const struct inode *inode)
{
	return &((const struct sysfs_inode *)inode)->node;
}

static int sysfs_lookup(struct inode *directory, const struct name *wanted, struct inode **found)
{
	struct node node = parent_of(node_of(directory));
	char name[NAME];

	if (name_is(wanted, ".."))
		return make(&node, found);
	for (uint32_t i = 0; child_at(node_of(directory), i, name, &node); i++)
		if (name_is(wanted, name))
			return make(&node, found);
	return -ENOENT;
}

/* Positions 0 and 1 are "." and "..". */
static int sysfs_iterate(struct inode *directory, uint64_t *position, directory_visitor *visit,
			 void *context)
{
	for (;; ++*position) {
		struct node node = *node_of(directory);
		char name[NAME] = "..";

		name[*position < 2 ? *position + 1 : 2] = '\0';
		if (*position == 1)
			node = parent_of(&node);
		if (*position > 1 &&
		    !child_at(node_of(directory), (uint32_t)*position - 2, name, &node))
			return 0;
		struct directory_entry entry = { .name = name_of(name, strlen(name)),
						 .number = number_of(&node),
						 .mode = mode_of(&node),
						 .next = *position + 1 };

		if (!visit(context, &entry))
			return 0;
	}
}

static int sysfs_read_link(struct inode *inode, char *target, uint32_t size)
{
	const struct node *node = node_of(inode);
	const struct block_device *device = node->device;
	int length = snprintk(target, size, "%sdevices/%s%s%s", node->depth == 2 ? "../../" : "../",
			      device->whole ? device->whole->name : device->name,
			      device->whole ? "/" : "", device->whole ? device->name : "");

	return length < (int32_t)size ? length : (int32_t)size;
}

/* A shell's > wants to make a file empty before it writes. */
static int sysfs_truncate(struct inode *inode, uint64_t size)
{
	return node_of(inode)->attribute->store ? 0 : -EACCES;
}

/* ---- what is in a file ---- */

static int sysfs_read(struct file *file, struct buffer *to, uint64_t offset)
{
	const struct node *node = node_of(file->inode);
	const struct sysfs_attribute *attribute = node->attribute;
	char text[SYSFS_TEXT];
	uint64_t length;

	if (attribute->show)
		length = attribute->show(node->device, text, sizeof(text));
	else if (attribute->value)
		length = snprintk(text, sizeof(text), "%llu\n", attribute->value(node->device));
	else
		length = snprintk(text, sizeof(text), "%s", attribute->text);
	return offset < length ? buffer_put(to, text + offset, (uint32_t)(length - offset)) : 0;
}

static int sysfs_write(struct file *file, struct buffer *from, uint64_t offset)
{
	const struct node *node = node_of(file->inode);
	char line[SYSFS_LINE];
	int length = buffer_take(from, line, sizeof(line) - 1);

	if (!node->attribute->store)
		return -EACCES;
	if (length < 0)
		return length;
	line[length] = '\0';
	if (strchr(line, '\n'))
		*strchr(line, '\n') = '\0';
	int error = node->attribute->store(node->device, line);

	return error ? error : length;
}

static const struct inode_ops sysfs_ops = {
	.lookup = sysfs_lookup,
	.truncate = sysfs_truncate,
	.iterate = sysfs_iterate,
	.read_link = sysfs_read_link,
	.forget = sysfs_forget,
};

static const struct file_ops text_ops = { .read = sysfs_read, .write = sysfs_write };

/* ---- as a file system ---- */

/* There is one tree, which is at one place at a time. The root's own reference is that of its
 * mount. */
static int sysfs_mount(const struct filesystem *type, struct inode *device,
		       const struct mount_options *options, struct inode **mounted)
{
	if (root.inode.covers)
		return -EBUSY;
	*mounted = &root.inode;
	return 0;
}

static void sysfs_statfs(struct inode *inode, struct filesystem_usage *usage)
{
	*usage = (struct filesystem_usage){ .type = 0x62656572, .block_size = PAGE_SIZE };
}

static int sysfs_unmount(struct inode *inode)
{
	return inodes.used > 0 || inode->references > 1 ? -EBUSY : 0;
}

static void sysfs_start(void)
{
	static struct filesystem sysfs = { .type = "sysfs",
					   .mount = sysfs_mount,
					   .statfs = sysfs_statfs,
					   .unmount = sysfs_unmount };

	root.inode.filesystem = filesystem_number();
	fill(&root, &(struct node){ .kind = ROOT });
	root.inode.links = 2;
	filesystem_register(&sysfs);
	vfs_make(path_root(), "/sys", S_IFDIR | 0555, 0);
	if (vfs_mount(path_root(), "none", "sysfs", "/sys", &(struct mount_options){ 0 }) != 0)
		printk("files: /sys is not a directory, and stays as it is\n");
}
STARTUP(sysfs_start)
