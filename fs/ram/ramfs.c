/* Directories and inodes in memory. */
#include "fs/ram/ramfs.h"

#include <stddef.h>

#include "fs/ram/ramfs_internal.h"
#include "kernel/lib/errno.h"
#include "mm/pool.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

#define SHORT_NAME 44u

static struct pool inodes = POOL_INITIALIZER(struct ramfs_inode);
static struct pool short_entries = { .size = sizeof(struct ramfs_entry) + SHORT_NAME };
static struct pool long_entries = { .size = sizeof(struct ramfs_entry) + NAME_MAX + 1 };

static const struct inode_ops ramfs_ops;
static const struct file_ops directory_ops;

/* ---- inodes ---- */

static struct ramfs_inode *make_inode(uint32_t mode, uint32_t filesystem)
{
	static uint32_t last_number;
	struct ramfs_inode *made = pool_alloc(&inodes);

	if (!made)
		return NULL;
	inode_initialize(&made->inode, mode);
	made->inode.ops = &ramfs_ops;
	made->inode.file_ops = inode_is(&made->inode, S_IFDIR) ? &directory_ops : &ramfs_file_ops;
	made->inode.filesystem = filesystem;
	made->inode.number = ++last_number;
	if (inode_is(&made->inode, S_IFDIR)) {
		made->inode.links = 2;
		made->directory.end = &made->directory.first;
		made->directory.parent = made;
	}
	return made;
}

static bool has_pages(const struct inode *inode)
{
	return inode_is(inode, S_IFREG) ||
	       (inode_is(inode, S_IFLNK) && inode->size >= RAMFS_TARGET);
}

static void ramfs_forget(struct inode *inode)
{
	if (inode->links > 0)
		return;
	if (has_pages(inode))
		ramfs_truncate(inode, 0);
	pool_free(&inodes, inode);
}

struct inode *ramfs_create_root(void)
{
	struct ramfs_inode *root = make_inode(S_IFDIR | 0755, filesystem_number());

	if (ramfs_counts.pages_limit == 0)
		ramfs_counts.pages_limit = page_free_count() / 2;
	return root ? &root->inode : NULL;
}

struct ramfs_statistics ramfs_statistics(void)
{
	ramfs_counts.inodes = inodes.used;
	ramfs_counts.entries = short_entries.used + long_entries.used;
	return ramfs_counts;
}

/* ---- entries of a directory ---- */

static struct pool *entry_pool(uint32_t length)
{
	return length <= SHORT_NAME ? &short_entries : &long_entries;
}

static struct ramfs_entry *make_entry(const struct name *name)
{
	struct ramfs_entry *entry = pool_alloc(entry_pool(name->length));

	if (!entry)
		return NULL;
	entry->hash = name->hash;
	entry->length = name->length;
	memcpy(entry->text, name->text, name->length);
	return entry;
}

/* Where the pointer to the entry is, or (with NULL there) the end of the list. */
static struct ramfs_entry **find_entry(struct ramfs_inode *directory, const struct name *name)
{
	struct ramfs_entry **at = &directory->directory.first;

	while (*at && ((*at)->hash != name->hash || (*at)->length != name->length ||
		       memcmp((*at)->text, name->text, name->length) != 0))
		at = &(*at)->next;
	return at;
}

/* Adds an entry. A directory's ".." is a name of its parent. */
static void add_entry(struct ramfs_inode *directory, struct ramfs_entry *entry,
		      struct ramfs_inode *inode)
{
	entry->inode = inode;
	entry->position = directory->directory.positions++;
	*directory->directory.end = entry;
	directory->directory.end = &entry->next;
	if (inode_is(&inode->inode, S_IFDIR)) {
		inode->directory.parent = directory;
		directory->inode.links++;
	}
	inode_touch(&directory->inode, true);
}

static void remove_entry(struct ramfs_inode *directory, const struct name *name)
{
	struct ramfs_entry **at = find_entry(directory, name), *entry = *at;

	if (inode_is(&entry->inode->inode, S_IFDIR))
		directory->inode.links--;
	if (directory->directory.end == &entry->next)
		directory->directory.end = at;
	*at = entry->next;
	pool_free(entry_pool(entry->length), entry);
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

/* ---- operations ---- */

static int ramfs_lookup(struct inode *directory, const struct name *name, struct inode **found)
{
	struct ramfs_inode *ram = ramfs_inode(directory);

	if (name_is(name, "..")) {
		*found = inode_hold(&ram->directory.parent->inode);
		return 0;
	}
	struct ramfs_entry *entry = *find_entry(ram, name);

	if (!entry)
		return -ENOENT;
	*found = inode_hold(&entry->inode->inode);
	return 0;
}

static int ramfs_create(struct inode *directory, const struct name *name, uint32_t mode,
			uint32_t device, struct inode **made)
{
	struct ramfs_entry *entry = make_entry(name);
	struct ramfs_inode *inode = entry ? make_inode(mode, directory->filesystem) : NULL;

	if (!inode) {
		if (entry)
			pool_free(entry_pool(entry->length), entry);
		return -ENOSPC;
	}
	inode->inode.device = device;
	add_entry(ramfs_inode(directory), entry, inode);
	*made = &inode->inode;
	return 0;
}

static int ramfs_link(struct inode *directory, const struct name *name, struct inode *inode)
{
	struct ramfs_entry *entry = make_entry(name);

	if (!entry)
		return -ENOSPC;
	add_entry(ramfs_inode(directory), entry, ramfs_inode(inode));
	inode->links++;
	inode_touch(inode, false);
	return 0;
}

static int ramfs_remove(struct inode *directory, const struct name *name, struct inode *inode)
{
	if (is_full_directory(inode))
		return -ENOTEMPTY;
	remove_entry(ramfs_inode(directory), name);
	drop_link(ramfs_inode(inode));
	return 0;
}

static int ramfs_symlink(struct inode *directory, const struct name *name, const char *target)
{
	struct inode *made;
	uint32_t length = strlen(target);
	int error = ramfs_create(directory, name, S_IFLNK | 0777, 0, &made);

	if (error)
		return error;
	made->size = length;
	if (length < RAMFS_TARGET)
		memcpy(ramfs_inode(made)->target, target, length);
	else
		error = ramfs_store(ramfs_inode(made), target, length);
	if (error < 0)
		ramfs_remove(directory, name, made);
	inode_put(made);
	return error < 0 ? error : 0;
}

static int ramfs_read_link(struct inode *inode, char *target, uint32_t size)
{
	uint32_t length = inode->size < size ? (uint32_t)inode->size : size;

	if (inode->size < RAMFS_TARGET)
		memcpy(target, ramfs_inode(inode)->target, length);
	else
		ramfs_load(ramfs_inode(inode), target, length);
	return length;
}

static int ramfs_rename(struct inode *directory, const struct name *name, struct inode *inode,
			struct inode *new_directory, const struct name *new_name,
			struct inode *replaced)
{
	struct ramfs_entry *entry;

	if (replaced && is_full_directory(replaced))
		return -ENOTEMPTY;
	entry = make_entry(new_name);
	if (!entry)
		return -ENOSPC;
	if (replaced) {
		remove_entry(ramfs_inode(new_directory), new_name);
		drop_link(ramfs_inode(replaced));
	}
	remove_entry(ramfs_inode(directory), name);
	add_entry(ramfs_inode(new_directory), entry, ramfs_inode(inode));
	inode_touch(inode, false);
	return 0;
}

/* Positions 0 and 1 are "." and ".."; entries follow. */
static bool show(struct ramfs_inode *inode, const char *text, uint32_t length, uint64_t position,
		 directory_visitor *visit, void *context)
{
	struct directory_entry entry = {
		{ text, length, 0 }, inode->inode.number, inode->inode.mode, position + 1
	};

	return visit(context, &entry);
}

static int ramfs_iterate(struct inode *directory, uint64_t *position, directory_visitor *visit,
			 void *context)
{
	struct ramfs_inode *ram = ramfs_inode(directory);

	if (*position == 0 && show(ram, ".", 1, 0, visit, context))
		*position = 1;
	if (*position == 1 && show(ram->directory.parent, "..", 2, 1, visit, context))
		*position = 2;
	if (*position < 2)
		return 0;
	for (struct ramfs_entry *entry = ram->directory.first; entry; entry = entry->next) {
		uint64_t at = entry->position + 2ull;

		if (at < *position)
			continue;
		if (!show(entry->inode, entry->text, entry->length, at, visit, context))
			break;
		*position = at + 1;
	}
	return 0;
}

static const struct inode_ops ramfs_ops = {
	.lookup = ramfs_lookup,
	.create = ramfs_create,
	.symlink = ramfs_symlink,
	.link = ramfs_link,
	.remove = ramfs_remove,
	.rename = ramfs_rename,
	.iterate = ramfs_iterate,
	.read_link = ramfs_read_link,
	.truncate = ramfs_truncate,
	.forget = ramfs_forget,
};

static const struct file_ops directory_ops = { 0 };
