/*
 * Names of ext2, ext3 and ext4: struct inode_ops over fs/ext/ext.h.
 *
 * A walk along a path sleeps between its steps, so what it found may not be true any more when the
 * operation begins. Each operation looks again, with the mount's lock, before it changes anything:
 *
 *	task A				task B
 *	walk: "new" is not there
 *					walk: "new" is not there; create it
 *	create: "new" is there now: -ESTALE, and A walks again
 *
 * So the lock of the mount does what locks of directories would do, and a rename sees no other.
 */
#include "fs/disk/ext_inode.h"

#include "fs/ext/disk.h"

#define ROOT	   2u /* the root directory's number */
#define NAME(name) (&(const struct ext_name){ (name)->text, (name)->length })

/* Every operation on names begins with one of these two, and ends with disk_unlock: meanwhile no
 * other task sees a half of a change. */
static struct disk_mount *lock_mount(struct inode *inode)
{
	struct disk_mount *mount = disk_inode(inode)->mount;

	mutex_lock(&mount->lock);
	return mount;
}

/* The same for what may need blocks: those that dirty pages have reserved are not taken for it. */
static struct disk_mount *lock_to_grow(struct inode *inode)
{
	struct disk_mount *mount = lock_mount(inode);

	disk_need_blocks(mount, DISK_NAME_BLOCKS);
	return mount;
}

/* The library's copy of an inode, in which an operation changes it; disk_inode_update takes that
 * over.
 */
static struct ext_inode *ext_of(struct inode *inode)
{
	return &disk_inode(inode)->ext;
}

/* The names of a directory have changed. Where that is synchronous (dirsync, chattr +D) they are
 * safe now, or it is an error; then memory has the change all the same. */
static int finish_names(struct inode *directory, int error)
{
	const struct disk_mount *mount = disk_inode(directory)->mount;

	if (error || (!mount->synchronous_directories &&
		      !(ext_of(directory)->flags & (EXT_FLAG_SYNC | EXT_FLAG_DIRSYNC))))
		return error;
	return disk_commit_inode(&disk_inode(directory)->pages, false);
}

/* ---- is it still as the walk found it? ---- */

/* Before every name that is added: what was noted as absent may be there after that. */
static int check_absent(struct inode *directory, const struct name *name)
{
	struct dentry *absent = &disk_inode(directory)->mount->absent;
	uint32_t number;
	int error = -ENOENT;

	if (!dentry_is(absent, directory, name))
		error = ext_find(ext_of(directory), NAME(name), &number);
	absent->parent = 0;
	if (directory->links == 0)
		return -ENOENT;
	return error == -ENOENT ? 0 : error ? error : -ESTALE;
}

/* The name still leads to this inode. A dentry tells without the directory. */
static int check_present(struct inode *directory, const struct name *name, struct inode *inode)
{
	const struct dentry *kept = dentry_find(directory, name);
	uint32_t number;

	if (kept)
		return kept == &disk_inode(inode)->name ? 0 : -ESTALE;
	int error = ext_find(ext_of(directory), NAME(name), &number);

	if (error == -ENOENT || (!error && number != inode->number))
		return -ESTALE;
	return error;
}

/* ---- looking up and making ---- */

/* A directory has one name. On a damaged disk it may have more, and be in itself: a program
 * that walks through the tree would find no end. The first name that was found is the one, as on
 * Linux. */
static int check_only_name(struct inode *directory, const struct name *name, struct inode *found)
{
	const struct dentry *kept = &disk_inode(found)->name;

	if (!inode_is(found, S_IFDIR) || name_is(name, "..") || kept->parent == 0 ||
	    dentry_is(kept, directory, name))
		return 0;
	return ext_two_names(ext_of(directory), found->number);
}

/* First in the dentries, without a lock, since nothing of that sleeps; then in the directory. What
 * is not there is noted: the next call may be the one that makes it. */
static int disk_lookup(struct inode *directory, const struct name *name, struct inode **found)
{
	struct dentry *kept = dentry_find(directory, name);
	struct inode *inode;
	uint32_t number;

	if (kept) {
		*found = disk_inode_use(list_entry(kept, struct disk_inode, name));
		return 0;
	}
	struct disk_mount *mount = lock_mount(directory);
	int error = ext_find(ext_of(directory), NAME(name), &number);

	if (error == -ENOENT && name->length <= DENTRY_NAME)
		dentry_fill(&mount->absent, directory, name);
	if (!error)
		error = disk_inode_get(mount, number, &inode);
	if (error)
		return disk_unlock(mount, error);
	error = check_only_name(directory, name, inode);
	if (!error)
		dentry_set(&disk_inode(inode)->name, directory, name);
	disk_unlock(mount, error);
	if (error)
		inode_put(inode); /* without the lock: it may be the last reference */
	else
		*found = inode;
	return error;
}

/* Every user is root; a directory may pass its group on. */
static int make_named(struct inode *directory, const struct name *name, uint32_t mode,
		      uint32_t device, const char *target, struct inode **made)
{
	struct disk_mount *mount = lock_to_grow(directory);
	const struct ext_new new = { .mode = mode,
				     .group = directory->mode & S_ISGID ? directory->group : 0,
				     .device = device,
				     .target = target };
	struct disk_inode *inode = disk_inode_allocate(mount);
	int error = inode ? check_absent(directory, name) : -ENOMEM;

	if (!error)
		error = ext_create(ext_of(directory), NAME(name), &new, &inode->ext);
	disk_inode_update(disk_inode(directory));
	if (error && inode)
		disk_inode_free(inode);
	if (error)
		return disk_unlock(mount, error);
	disk_inode_insert(inode);
	dentry_set(&inode->name, directory, name);
	disk_inode_changed(inode, true);
	error = finish_names(directory, disk_unlock(mount, 0));
	if (error)
		inode_put(&inode->inode);
	else
		*made = &inode->inode;
	return error;
}

/* A directory in one that passes its group on does so, too, as on BSD. */
static int disk_create(struct inode *directory, const struct name *name, uint32_t mode,
		       uint32_t device, struct inode **made)
{
	if ((directory->mode & S_ISGID) && (mode & S_IFMT) == S_IFDIR)
		mode |= S_ISGID;
	return make_named(directory, name, mode, device, NULL, made);
}

/* The target is in the inode, or in a block that is allocated at once. */
static int disk_symlink(struct inode *directory, const struct name *name, const char *target)
{
	struct inode *made = NULL;
	int error = make_named(directory, name, S_IFLNK | 0777, 0, target, &made);

	inode_put(made);
	return error;
}

/* An inode without names is an orphan, which the next mount would free: -ENOENT. */
static int disk_link(struct inode *directory, const struct name *name, struct inode *inode)
{
	struct disk_mount *mount = lock_to_grow(directory);
	int error = inode->links ? check_absent(directory, name) : -ENOENT;

	if (!error) {
		error = ext_link(ext_of(directory), NAME(name), ext_of(inode));
		disk_inode_update(disk_inode(directory));
		disk_inode_update(disk_inode(inode));
	}
	return finish_names(directory, disk_unlock(mount, error));
}

/* ---- removing and moving ---- */

/* The dentry goes before the directory changes: who finds the name from then on asks the disk. */
static int disk_remove(struct inode *directory, const struct name *name, struct inode *inode)
{
	struct disk_mount *mount = lock_mount(directory);
	int error = check_present(directory, name, inode);

	if (!error) {
		dentry_forget(&disk_inode(inode)->name);
		error = ext_remove(ext_of(directory), NAME(name), ext_of(inode));
		disk_inode_update(disk_inode(directory));
		disk_inode_update(disk_inode(inode));
	}
	return finish_names(directory, disk_unlock(mount, error));
}

/* Is a directory the inode, or below it? By numbers, up to the root; a circle on a damaged disk
 * ends, too. The VFS has asked before the lock, and another rename may have come between: -ESTALE.
 */
static int check_not_below(struct inode *directory, const struct inode *inode)
{
	const struct ext_name up = { "..", 2 };
	struct ext_inode at = *ext_of(directory);
	uint32_t number = at.number, steps = 0;
	int error = 0;

	while (!error && number != inode->number && number != ROOT && steps++ < PATH_MAX) {
		error = ext_find(&at, &up, &number);
		if (!error)
			error = ext_inode_read(at.fs, number, &at);
	}
	return error ? error : number == inode->number ? -ESTALE : 0;
}

/* Both names, and that a directory does not get into itself: what the walk has found is asked
 * again. */
static int check_moved(struct inode *directory, const struct name *name, struct inode *inode,
		       struct inode *new_directory, const struct name *new_name,
		       struct inode *replaced)
{
	int error = check_present(directory, name, inode);

	if (!error)
		error = replaced ? check_present(new_directory, new_name, replaced)
				 : check_absent(new_directory, new_name);
	if (!error && inode_is(inode, S_IFDIR) && directory != new_directory)
		error = check_not_below(new_directory, inode);
	return error;
}

/* The names will be those of other inodes, or of none: so nobody finds them by a dentry meanwhile.
 */
static void forget_names(struct inode *inode, struct inode *other)
{
	dentry_forget(&disk_inode(inode)->name);
	if (other)
		dentry_forget(&disk_inode(other)->name);
}

/* What a file has goes to the disk before it takes another one's name: else a power cut could leave
 * neither the old contents nor the new ones, because blocks are allocated by the write-back only.
 */
static int write_before(struct inode *inode, const struct inode *replaced)
{
	if (!replaced || !inode_is(inode, S_IFREG))
		return 0;
	return cached_file_write_back(&disk_inode(inode)->pages, 0, UINT32_MAX);
}

static int rename_either(struct inode *directory, const struct name *name, struct inode *inode,
			 struct inode *new_directory, const struct name *new_name,
			 struct inode *other, bool exchange)
{
	struct disk_mount *mount = lock_to_grow(directory);
	int error = check_moved(directory, name, inode, new_directory, new_name, other);

	if (!error && exchange && inode_is(other, S_IFDIR) && directory != new_directory)
		error = check_not_below(directory, other);
	if (!error) {
		forget_names(inode, other);
		error =
		    ext_rename(ext_of(directory), NAME(name), ext_of(inode), ext_of(new_directory),
			       NAME(new_name), other ? ext_of(other) : NULL, exchange);
		disk_inode_update(disk_inode(directory));
		disk_inode_update(disk_inode(inode));
		disk_inode_update(disk_inode(new_directory));
		if (other)
			disk_inode_update(disk_inode(other));
	}
	return finish_names(new_directory, finish_names(directory, disk_unlock(mount, error)));
}

/* struct inode_ops's rename and exchange: the VFS has checked types and mounts. */
static int disk_rename(struct inode *directory, const struct name *name, struct inode *inode,
		       struct inode *new_directory, const struct name *new_name,
		       struct inode *replaced)
{
	int error = write_before(inode, replaced);

	return error ? error
		     : rename_either(directory, name, inode, new_directory, new_name, replaced,
				     false);
}

static int disk_exchange(struct inode *directory, const struct name *name, struct inode *inode,
			 struct inode *new_directory, const struct name *new_name,
			 struct inode *other)
{
	return rename_either(directory, name, inode, new_directory, new_name, other, true);
}

/* ---- listing ---- */

/* What a listing gives its entries to. The library has its own form of a visitor, since it knows no
 * VFS. */
struct listing {
	directory_visitor *visit;
	void *context;
	const uint64_t *position; /* after the entry that the library shows */
};

/* ext's types of entries are those of the upper bits of a mode, but in another order. */
static uint32_t mode_of_type(uint8_t type)
{
	static const uint32_t modes[] = { 0,	   S_IFREG, S_IFDIR,  S_IFCHR,
					  S_IFBLK, S_IFIFO, S_IFSOCK, S_IFLNK };

	return type < sizeof(modes) / sizeof(modes[0]) ? modes[type] : 0;
}

static int pass_entry_on(void *context, const char *name, uint32_t number, uint8_t type)
{
	const struct listing *listing = context;
	const struct directory_entry entry = { name_of(name, strlen(name)), number,
					       mode_of_type(type), *listing->position };

	return !listing->visit(listing->context, &entry);
}

/* The lock is held all the while: `visit` copies entries to memory of the kernel, and cannot sleep.
 */
static int disk_iterate(struct inode *directory, uint64_t *position, directory_visitor *visit,
			void *context)
{
	struct disk_mount *mount = lock_mount(directory);
	struct listing listing = { visit, context, position };
	int error = ext_iterate(ext_of(directory), position, pass_entry_on, &listing);

	return disk_unlock(mount, error < 0 ? error : 0);
}

/* ---- the rest ---- */

/* A long target is read from its block, so this may wait for the disk. */
static int disk_read_link(struct inode *inode, char *target, uint32_t size)
{
	struct disk_mount *mount = lock_mount(inode);

	return disk_unlock(mount, ext_read(ext_of(inode), 0, target, size));
}

/* Attributes are read and changed in the library; their names were checked by the system call. */
static int disk_get_attribute(struct inode *inode, const char *name, void *value, uint32_t size)
{
	struct disk_mount *mount = lock_mount(inode);

	return disk_unlock(mount, ext_attribute_get(ext_of(inode), name, value, size));
}

static int disk_list_attributes(struct inode *inode, char *names, uint32_t size)
{
	struct disk_mount *mount = lock_mount(inode);

	return disk_unlock(mount, ext_attribute_list(ext_of(inode), names, size));
}

static int disk_set_attribute(struct inode *inode, const char *name, const void *value,
			      uint32_t size, uint32_t flags)
{
	lock_to_grow(inode);
	int error = ext_attribute_set(ext_of(inode), name, value, size, flags);

	return disk_finish(disk_inode(inode), disk_inode_unlock(disk_inode(inode), error));
}

/* Owners, modes and times go to the inode's block in the cache; the next commit makes them safe. */
static int disk_changed(struct inode *inode)
{
	struct disk_mount *mount = lock_mount(inode);

	return disk_unlock(mount, disk_inode_store(disk_inode(inode)));
}

/* Of all types: the VFS asks for none that an inode's type does not have. */
const struct inode_ops disk_inode_ops = {
	.lookup = disk_lookup,
	.create = disk_create,
	.symlink = disk_symlink,
	.link = disk_link,
	.remove = disk_remove,
	.rename = disk_rename,
	.exchange = disk_exchange,
	.iterate = disk_iterate,
	.read_link = disk_read_link,
	.truncate = disk_truncate,
	.allocate = disk_allocate,
	.seek = disk_seek,
	.get_attribute = disk_get_attribute,
	.list_attributes = disk_list_attributes,
	.set_attribute = disk_set_attribute,
	.changed = disk_changed,
	.forget = disk_inode_forget,
};
