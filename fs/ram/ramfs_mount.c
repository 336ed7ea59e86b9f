/*
 * The file system in memory as something to mount: "ramfs", which is the root at first, and
 * "tmpfs", which is the same here. All of them share one limit (struct ramfs_statistics).
 *
 * To unmount one, its tree is walked twice without recursion, since a directory knows its parent:
 * is an inode in use? And then everything goes, the deepest first.
 */
#include <stddef.h>

#include "fs/ram/ramfs.h"
#include "fs/vfs/filesystem.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/number.h"
#include "kernel/lib/startup.h"
#include "kernel/lib/string.h"
#include "kernel/report/printk.h"
#include "mm/memory_map.h"
#include "mm/page_alloc.h"

/* "755": a mode in octal digits, or 0. */
static uint32_t mode_of(const char *text)
{
	uint32_t mode = 0;

	for (; *text >= '0' && *text <= '7'; text++)
		mode = mode * 8 + *text - '0';
	return *text ? 0 : mode & S_ALL;
}

static int tmpfs_mount(const struct filesystem *type, struct inode *device,
		       const struct mount_options *options, struct inode **root)
{
	const char *text = options->text, *value;
	uint32_t mode = 01777;
	char name[32];

	while (mount_option_next(&text, name, sizeof(name), &value)) {
		mode = strcmp(name, "mode") == 0 ? mode_of(value) : 0;
		if (!mode) {
			printk("mount: %s: option %s=%s is not known (mode=755 is)\n", type->type,
			       name, value);
			return -EINVAL;
		}
	}
	*root = ramfs_create_root();
	if (!*root)
		return -ENOMEM;
	(*root)->mode = S_IFDIR | mode;
	return 0;
}

static void ramfs_statfs(struct inode *root, struct filesystem_usage *usage)
{
	uint32_t free = page_free_count();

	*usage = (struct filesystem_usage){ .type = 0x858458f6,
					    .block_size = PAGE_SIZE,
					    .blocks = memory_map_usable() / (PAGE_SIZE / 1024),
					    .free = free,
					    .available = free };
}

/* The entry after the one of this inode in its directory. */
static struct ramfs_entry *entry_after(const struct ramfs_inode *inode)
{
	struct ramfs_entry *entry = inode->directory.parent->directory.first;

	while (entry->inode != inode)
		entry = entry->next;
	return entry->next;
}

/* Is any inode below the root in use? Inodes whose last name is gone are not below it, and go by
 * themselves. */
static bool is_in_use(const struct ramfs_inode *root)
{
	const struct ramfs_inode *directory = root;
	const struct ramfs_entry *entry = root->directory.first;

	for (;;) {
		while (!entry && directory != root) {
			entry = entry_after(directory);
			directory = directory->directory.parent;
		}
		if (!entry)
			return false;
		if (entry->inode->inode.references > 0)
			return true;
		if (inode_is(&entry->inode->inode, S_IFDIR)) {
			directory = entry->inode;
			entry = directory->directory.first;
		} else {
			entry = entry->next;
		}
	}
}

static void remove_first(struct ramfs_inode *directory)
{
	struct ramfs_entry *entry = directory->directory.first;
	struct inode *inode = inode_hold(&entry->inode->inode);
	char text[NAME_MAX];
	uint32_t length = entry->length;

	memcpy(text, entry->text, length);
	struct name name = name_of(text, length);

	directory->inode.ops->remove(&directory->inode, &name, inode);
	inode_put(inode);
}

static int ramfs_unmount(struct inode *inode)
{
	struct ramfs_inode *root = ramfs_inode(inode), *directory = root;

	if (inode->references > 1 || is_in_use(root))
		return -EBUSY;
	while (directory != root || root->directory.first) {
		const struct ramfs_entry *entry = directory->directory.first;
		struct ramfs_inode *parent = directory->directory.parent;

		if (!entry)
			directory = parent;
		else if (inode_is(&entry->inode->inode, S_IFDIR) && entry->inode->directory.first)
			directory = entry->inode;
		else
			remove_first(directory);
	}
	inode->links = 0;
	inode_put(inode);
	return 0;
}

static void ramfs_start(void)
{
	static struct filesystem ramfs = { .type = "ramfs",
					   .mount = tmpfs_mount,
					   .statfs = ramfs_statfs,
					   .unmount = ramfs_unmount };
	static struct filesystem tmpfs = { .type = "tmpfs",
					   .mount = tmpfs_mount,
					   .statfs = ramfs_statfs,
					   .unmount = ramfs_unmount };

	filesystem_register(&ramfs);
	filesystem_register(&tmpfs);
}
STARTUP(ramfs_start)
