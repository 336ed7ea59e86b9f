/*
 * Links, removing and renaming in the file system in memory: the operations go into its table at
 * start-up.
 *
 * A symbolic link has inode operations of its own. Its target lies in a page, or, when it is short,
 * in an object of a pool.
 */
#include <stddef.h>

#include "fs/vfs/path.h"
#include "fs/ram/ramfs.h"
#include "fs/ram/ramfs_internal.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/startup.h"
#include "kernel/lib/string.h"
#include "fs/vfs/names.h"
#include "mm/page_alloc.h"
#include "mm/pool.h"

#define SHORT_TARGET 64u

static struct pool short_targets = { .size = SHORT_TARGET };

/* ---- removing ---- */

static void remove_entry(struct ramfs_inode *directory, const struct name *name)
{
	struct ramfs_entry **at = ramfs_find_entry(directory, name), *entry = *at;

	if (inode_is(&entry->inode->inode, S_IFDIR))
		directory->inode.links--;
	if (directory->directory.end == &entry->next)
		directory->directory.end = at;
	*at = entry->next;
	ramfs_free_entry(entry);
	inode_touch(&directory->inode, true);
}

/* A name of the inode is gone. A directory has but one. */
static void drop_link(struct ramfs_inode *inode)
{
	if (inode_is(&inode->inode, S_IFDIR)) {
		inode->inode.links = 0;
		inode->directory.parent = inode;
	} else {
		inode->inode.links--;
	}
	inode_touch(&inode->inode, false);
}

static bool is_full_directory(const struct inode *inode)
{
	return inode_is(inode, S_IFDIR) && ((const struct ramfs_inode *)inode)->directory.first;
}

static int ramfs_remove(struct inode *directory, const struct name *name, struct inode *inode)
{
	if (is_full_directory(inode))
		return -ENOTEMPTY;
	remove_entry(ramfs_inode(directory), name);
	drop_link(ramfs_inode(inode));
	return 0;
}

static int ramfs_rename(struct inode *directory, const struct name *name, struct inode *inode,
			struct inode *new_directory, const struct name *new_name,
			struct inode *replaced)
{
	struct ramfs_entry *entry;

	if (replaced && is_full_directory(replaced))
		return -ENOTEMPTY;
	entry = ramfs_make_entry(new_name);
	if (!entry)
		return -ENOSPC;
	if (replaced) {
		remove_entry(ramfs_inode(new_directory), new_name);
		drop_link(ramfs_inode(replaced));
	}
	remove_entry(ramfs_inode(directory), name);
	ramfs_add_entry(ramfs_inode(new_directory), entry, ramfs_inode(inode));
	inode_touch(inode, false);
	return 0;
}

/* ---- links ---- */

static int ramfs_link(struct inode *directory, const struct name *name, struct inode *inode)
{
	struct ramfs_entry *entry = ramfs_make_entry(name);

	if (!entry)
		return -ENOSPC;
	ramfs_add_entry(ramfs_inode(directory), entry, ramfs_inode(inode));
	inode->links++;
	inode_touch(inode, false);
	return 0;
}

static bool is_short(const struct inode *link)
{
	return link->size < SHORT_TARGET;
}

static void free_target(struct inode *link)
{
	char *target = ramfs_inode(link)->target;

	if (target && is_short(link)) {
		pool_free(&short_targets, target);
	} else if (target) {
		page_free(target, 0);
		ramfs_counts.pages--;
	}
}

static void ramfs_link_forget(struct inode *inode)
{
	if (inode->links > 0)
		return;
	free_target(inode);
	ramfs_free_inode(ramfs_inode(inode));
}

static int ramfs_read_link(struct inode *inode, char *target, uint32_t size)
{
	uint32_t length = inode->size < size ? (uint32_t)inode->size : size;

	memcpy(target, ramfs_inode(inode)->target, length);
	return length;
}

static const struct inode_ops link_ops = {
	.read_link = ramfs_read_link,
	.forget = ramfs_link_forget,
};

/* Keeps a target in a new link. Returns 0 or -ENOSPC. */
static int keep_target(struct ramfs_inode *link, const char *target)
{
	link->inode.size = strlen(target);
	if (is_short(&link->inode))
		link->target = pool_alloc(&short_targets);
	else if (ramfs_counts.pages < ramfs_counts.pages_limit)
		link->target = page_alloc(0);
	if (!link->target)
		return -ENOSPC;
	memcpy(link->target, target, link->inode.size);
	if (!is_short(&link->inode)) {
		ramfs_counts.pages++;
		link->inode.blocks = PAGE_SIZE / 512;
	}
	return 0;
}

static int ramfs_symlink(struct inode *directory, const struct name *name, const char *target)
{
	struct inode *made;
	int error = ramfs_ops.create(directory, name, S_IFLNK | 0777, 0, &made);

	if (error)
		return error;
	made->ops = &link_ops;
	error = keep_target(ramfs_inode(made), target);
	if (error)
		ramfs_remove(directory, name, made);
	inode_put(made);
	return error;
}

static void ramfs_names_start(void)
{
	ramfs_ops.symlink = ramfs_symlink;
	ramfs_ops.link = ramfs_link;
	ramfs_ops.remove = ramfs_remove;
	ramfs_ops.rename = ramfs_rename;
}
STARTUP(ramfs_names_start)
