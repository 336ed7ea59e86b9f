/*
 * A file system in memory: inodes, and directories as lists of names.
 *
 *	directory "/"		entries, in the order in which they were made
 *	first ----------------> "bin"	position 0	inode 2, a directory whose parent is "/"
 *	end ---------.		"init"	position 2	inode 5, a file
 *		     '--> the last entry's `next`: a new one is added there
 *
 * `links` counts an inode's names, `references` its users; it is freed when it has neither.
 * Positions only grow along a list and are never given out twice. So a program that lists a
 * directory piece by piece (getdents64) sees every name that stays exactly once, although others
 * come and go meanwhile: it says "from position 3 on", and that remains true.
 *
 * Called through inode_ops, for the current task. Nothing sleeps, so the data that an operation
 * reads does not change before it ends.
 */
#include "fs/ram/ramfs.h"

#include "fs/vfs/vfs.h"

struct pool ramfs_inodes = POOL_INITIALIZER(struct ramfs_inode);
struct pool ramfs_entries = { .size = sizeof(struct ramfs_entry) + NAME_MAX + 1 };
/* All inodes, so that the end of a file system finds those that no name leads to. */
static struct list all = LIST_EMPTY(all);

/* Of all types: the VFS asks for none that an inode's type does not have. */
static const struct inode_ops ramfs_ops;

/* ---- inodes ---- */

static const struct file_ops directory_ops = { .read = vfs_read_directory };

/* What an open file of this type can do; NULL: it cannot be opened. */
static const struct file_ops *file_ops_of(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return &directory_ops;
	case S_IFREG:
		return &ramfs_file_ops;
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
		return &special_file_ops;
	}
	return NULL;
}

/* Numbers are never used twice. A directory begins with two names, its own and its "."; with no
 * parent known yet, it is its own, as the root stays. */
struct ramfs_inode *ramfs_make_inode(uint32_t mode, uint32_t filesystem)
{
	static uint32_t last_number;
	struct ramfs_inode *made = pool_alloc(&ramfs_inodes);

	if (!made)
		return NULL;
	inode_initialize(&made->inode, mode);
	made->inode.ops = &ramfs_ops;
	made->inode.file_ops = file_ops_of(mode);
	made->inode.filesystem = filesystem;
	made->inode.number = ++last_number;
	list_append(&all, &made->in_all);
	if (inode_is(&made->inode, S_IFDIR)) {
		made->inode.links = 2;
		made->directory.end = &made->directory.first;
		made->directory.parent = made;
	}
	return made;
}

/* Its target is in a page. */
static bool is_long_link(const struct inode *inode)
{
	return inode_is(inode, S_IFLNK) && inode->size > RAMFS_TARGET;
}

/* The last reference is gone. With a name left the inode stays: its directory knows it. */
static void ramfs_forget(struct inode *inode)
{
	bool has_pages = inode_is(inode, S_IFREG) || is_long_link(inode);

	if (inode->links > 0)
		return;
	if (has_pages)
		ramfs_truncate(inode, 0);
	list_remove(&ramfs_inode(inode)->in_all);
	pool_free(&ramfs_inodes, inode);
}

/* The limit is set once: files may fill half of the memory, and programs have the rest. tmpfs(5)
 * has the same default, for each file system; here it is for all together. */
struct inode *ramfs_create_root(void)
{
	struct ramfs_inode *root = ramfs_make_inode(S_IFDIR | 0755, filesystem_number());

	if (ramfs_counts.pages_limit == 0)
		ramfs_counts.pages_limit = page_free_count() / 2;
	return root ? &root->inode : NULL;
}

/* ---- entries of a directory ---- */

/* Copies a name, because the path that it was cut from is freed when the call ends. */
static void set_entry_name(struct ramfs_entry *entry, const struct name *name)
{
	entry->hash = name->hash;
	entry->length = name->length;
	memcpy(entry->text, name->text, name->length);
}

/* An entry that is in no directory yet. NULL without memory. */
static struct ramfs_entry *make_entry(const struct name *name)
{
	struct ramfs_entry *entry = pool_alloc(&ramfs_entries);

	if (entry)
		set_entry_name(entry, name);
	return entry;
}

/* Where the pointer to the entry is, or (with NULL there) the end of the list. Hashes first: only
 * where those agree are letters compared. */
static struct ramfs_entry **entry_at(struct ramfs_inode *directory, const struct name *name)
{
	struct ramfs_entry **at = &directory->directory.first;

	while (*at && ((*at)->hash != name->hash || (*at)->length != name->length ||
		       memcmp((*at)->text, name->text, name->length) != 0))
		at = &(*at)->next;
	return at;
}

/* Makes an entry the last of its directory, for an inode whose links already count it. A
 * directory's ".." is a name of its parent. */
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

/* ---- operations ---- */

/* ".." is not in the list: a directory knows its parent. The root is its own, and a mount's root is
 * passed by fs/vfs, which goes on where it is mounted. */
static int ramfs_lookup(struct inode *directory, const struct name *name, struct inode **found)
{
	struct ramfs_inode *ram = ramfs_inode(directory);

	if (name_is(name, "..")) {
		*found = inode_hold(&ram->directory.parent->inode);
		return 0;
	}
	struct ramfs_entry *entry = *entry_at(ram, name);

	if (!entry)
		return -ENOENT;
	*found = inode_hold(&entry->inode->inode);
	return 0;
}

/* Both pieces of memory are there before anything changes, so a failure changes nothing. */
static int ramfs_create(struct inode *directory, const struct name *name, uint32_t mode,
			uint32_t device, struct inode **made)
{
	struct ramfs_entry *entry = make_entry(name);
	struct ramfs_inode *inode = entry ? ramfs_make_inode(mode, directory->filesystem) : NULL;

	if (!inode) {
		if (entry)
			pool_free(&ramfs_entries, entry);
		return -ENOSPC;
	}
	inode->inode.device = device;
	if (directory->mode &
	    S_ISGID) { /* mkdir(2): the group, and to a directory the bit itself */
		inode->inode.group = directory->group;
		inode->inode.mode |= inode_is(&inode->inode, S_IFDIR) ? S_ISGID : 0;
	}
	add_entry(ramfs_inode(directory), entry, inode);
	*made = &inode->inode;
	return 0;
}

/* Shows one entry; the next one has the position after it. False: the visitor has no room. */
static bool ramfs_show(struct ramfs_inode *inode, const char *text, uint32_t length,
		       uint64_t position, directory_visitor *visit, void *context)
{
	struct directory_entry entry = {
		{ text, length, 0 }, inode->inode.number, inode->inode.mode, position + 1
	};

	return visit(context, &entry);
}

/* Positions 0 and 1 are "." and ".."; an entry's is its own plus 2. Entries before *position were
 * seen already; those between may be gone. */
static int ramfs_iterate(struct inode *directory, uint64_t *position, directory_visitor *visit,
			 void *context)
{
	struct ramfs_inode *ram = ramfs_inode(directory);

	if (*position == 0 && ramfs_show(ram, ".", 1, 0, visit, context))
		*position = 1;
	if (*position == 1 && ramfs_show(ram->directory.parent, "..", 2, 1, visit, context))
		*position = 2;
	if (*position < 2)
		return 0;
	for (struct ramfs_entry *entry = ram->directory.first; entry; entry = entry->next) {
		uint64_t at = entry->position + 2ull;

		if (at < *position)
			continue;
		if (!ramfs_show(entry->inode, entry->text, entry->length, at, visit, context))
			break;
		*position = at + 1;
	}
	return 0;
}

/* ---- removing ---- */

/* Takes a name out of its directory. The entry is the caller's. */
static struct ramfs_entry *remove_entry(struct ramfs_inode *directory, const struct name *name)
{
	struct ramfs_entry **at = entry_at(directory, name), *entry = *at;

	if (inode_is(&entry->inode->inode, S_IFDIR))
		directory->inode.links--;
	if (directory->directory.end == &entry->next)
		directory->directory.end = at;
	*at = entry->next;
	entry->next = NULL;
	inode_touch(&directory->inode, true);
	return entry;
}

/* A name of the inode is gone. A directory has but one, and its own "." and ".." end with it. */
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

/* -ENOTEMPTY. The VFS has checked that the name is there, and whose it is. */
static int ramfs_remove(struct inode *directory, const struct name *name, struct inode *inode)
{
	if (inode_is(inode, S_IFDIR) && ramfs_inode(inode)->directory.first)
		return -ENOTEMPTY;
	pool_free(&ramfs_entries, remove_entry(ramfs_inode(directory), name));
	drop_link(ramfs_inode(inode));
	return 0;
}

/* The entry itself moves, so nothing is allocated, and only removing what is replaced can fail. It
 * gets a new position: a listing under way may show the file by both names, as POSIX allows. */
static int ramfs_rename(struct inode *directory, const struct name *name, struct inode *inode,
			struct inode *new_directory, const struct name *new_name,
			struct inode *replaced)
{
	int error = replaced ? ramfs_remove(new_directory, new_name, replaced) : 0;

	if (error)
		return error;
	struct ramfs_entry *entry = remove_entry(ramfs_inode(directory), name);

	set_entry_name(entry, new_name);
	add_entry(ramfs_inode(new_directory), entry, ramfs_inode(inode));
	inode_touch(inode, false);
	return 0;
}

/* Moves an inode's ".." and the link that it counts from its old directory to the new one. */
static void move_links(struct inode *inode, struct inode *from, struct inode *to)
{
	if (inode_is(inode, S_IFDIR)) {
		ramfs_inode(inode)->directory.parent = ramfs_inode(to);
		from->links--;
		to->links++;
	}
	inode_touch(inode, false);
	inode_touch(to, true);
}

/* Each entry keeps its name and its position, and gets the other one's inode. */
static int ramfs_exchange(struct inode *directory, const struct name *name, struct inode *inode,
			  struct inode *new_directory, const struct name *new_name,
			  struct inode *other)
{
	(*entry_at(ramfs_inode(directory), name))->inode = ramfs_inode(other);
	(*entry_at(ramfs_inode(new_directory), new_name))->inode = ramfs_inode(inode);
	move_links(inode, directory, new_directory);
	move_links(other, new_directory, directory);
	return 0;
}

/* ---- links ---- */

/* Both names are equal: none is the first one. -ENOSPC without memory for the entry; -ENOENT for an
 * inode that has lost its last name, even if it is still open: link(2). */
static int ramfs_link(struct inode *directory, const struct name *name, struct inode *inode)
{
	struct ramfs_entry *entry = inode->links > 0 ? make_entry(name) : NULL;

	if (!entry)
		return inode->links > 0 ? -ENOSPC : -ENOENT; /* a name that is lost stays lost */
	add_entry(ramfs_inode(directory), entry, ramfs_inode(inode));
	inode->links++;
	inode_touch(inode, false);
	return 0;
}

/* Where a symbolic link's target is, once its size is set. NULL without memory for a new one. */
static char *target_of(struct ramfs_inode *link)
{
	return is_long_link(&link->inode) ? ramfs_make_page(link, 0) : link->target;
}

/* Up to `size` bytes, without a NUL. Cutting it is not an error: readlink(2). */
static int ramfs_read_link(struct inode *inode, char *target, uint32_t size)
{
	uint32_t length = inode->size < size ? (uint32_t)inode->size : size;

	memcpy(target, target_of(ramfs_inode(inode)), length);
	return length;
}

/* The size is set before the place for the target is asked for, because that depends on it. */
static int ramfs_symlink(struct inode *directory, const struct name *name, const char *target)
{
	struct inode *made;
	int error = ramfs_create(directory, name, S_IFLNK | 0777, 0, &made);

	if (error)
		return error;
	made->size = strlen(target);
	char *text = target_of(ramfs_inode(made));

	if (text)
		memcpy(text, target, made->size);
	else
		error = ramfs_remove(directory, name, made) ?: -ENOSPC;
	inode_put(made);
	return error;
}

static const struct inode_ops ramfs_ops = {
	.lookup = ramfs_lookup,
	.create = ramfs_create,
	.symlink = ramfs_symlink,
	.link = ramfs_link,
	.remove = ramfs_remove,
	.rename = ramfs_rename,
	.exchange = ramfs_exchange,
	.iterate = ramfs_iterate,
	.read_link = ramfs_read_link,
	.truncate = ramfs_truncate,
	.forget = ramfs_forget,
};

/* ---- the end of a file system ---- */

/* The next inode of a file system: the first for NULL, NULL after the last. */
static struct ramfs_inode *next_of(uint32_t filesystem, const struct ramfs_inode *before)
{
	const struct list *link = before ? before->in_all.next : all.next;

	for (; link != &all; link = link->next) {
		struct ramfs_inode *each = list_entry(link, struct ramfs_inode, in_all);

		if (each->inode.filesystem == filesystem)
			return each;
	}
	return NULL;
}

/* An inode that is mapped, or has lost its names and is open, is in use, too. Entries go first,
 * then the inodes, whatever their order: nothing looks at the tree any more. */
int ramfs_unmount(struct inode *root)
{
	const uint32_t filesystem = root->filesystem;
	struct ramfs_inode *each = NULL, *next;

	while ((each = next_of(filesystem, each)))
		if (each->inode.references > (&each->inode == root))
			return -EBUSY;
	for (each = next_of(filesystem, NULL); each; each = next) {
		struct ramfs_entry *entry;

		next = next_of(filesystem, each);
		while (inode_is(&each->inode, S_IFDIR) && (entry = each->directory.first)) {
			each->directory.first = entry->next;
			pool_free(&ramfs_entries, entry);
		}
		each->inode.links = 0;
		ramfs_forget(&each->inode);
	}
	return 0;
}
