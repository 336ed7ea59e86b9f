/*
 * The cache of inodes: one structure for each number, in a tree of the mount.
 *
 *	in use		somebody has a reference
 *	unused		nobody has: kept with its pages, the one longest unused goes first, unless
 *			it has something that is not on the disk yet
 *	without names	goes with its last reference: its pages are cut, its blocks freed
 *
 * An inode enters and leaves the tree under the mount's lock, or without sleeping; so there are
 * never two structures for one number. The thread that writes pages back holds what it writes, and
 * the one that stores times holds that inode, so the last reference may be given back more than
 * once: forget looks at what is true then.
 */
#include "fs/disk/ext_inode.h"

#include "fs/ext/disk.h"
#include "fs/vfs/vfs.h"
#include "kernel/report/printk.h"
#include "mm/pool.h"

#define MEMORY_PART 12u /* of the memory that was free at first: for unused inodes */
#define LOOKS	    16u /* at unused inodes, for one that can go */

struct disk_mount *disk_mounts;

static struct list unused = LIST_EMPTY(unused);
static uint32_t unused_count, unused_most;
static struct pool pool = POOL_INITIALIZER(struct disk_inode);

static struct disk_inode *inode_of_node(struct tree_node *node)
{
	return node ? list_entry(node, struct disk_inode, in_mount) : NULL;
}

/* The first inode below a node, by number from `from` on, for which visit is true; NULL: there is
 * none. By numbers a walk goes on whatever came or went meanwhile. */
static struct disk_inode *find_inode_below(struct tree_node *node, uint64_t from,
					   bool (*visit)(struct disk_inode *inode))
{
	if (!node)
		return NULL;
	struct disk_inode *found =
	    node->key > from ? find_inode_below(node->left, from, visit) : NULL;

	if (!found && node->key >= from && visit(inode_of_node(node)))
		found = inode_of_node(node);
	return found ? found : find_inode_below(node->right, from, visit);
}

static void take_from_unused(struct disk_inode *inode)
{
	if (!inode->is_unused)
		return;
	list_remove(&inode->in_unused);
	inode->is_unused = false;
	unused_count--;
}

/* Where the mount keeps when it, or one of few others, was evicted before its changes were safe. */
static uint32_t *evicted_in(const struct disk_inode *inode)
{
	return &inode->mount->evicted_in[inode->ext.number % EVICTED];
}

static void remove_from_tree(struct disk_inode *inode)
{
	tree_remove(&inode->mount->inodes, &inode->in_mount);
	dentry_forget(&inode->name);
	take_from_unused(inode);
}

/* ---- from the library's inode to the VFS's ---- */

/* Of a device or a named pipe only syncfs tells errors of write-back; all else is as everywhere. */
static int open_special(struct file *file)
{
	file->ops = &special_file_ops;
	file->mount_errors = errors_sample(&disk_inode(file->inode)->mount->errors);
	return file->ops->open(file);
}

static const struct file_ops special_ops = { .open = open_special };

static const struct file_ops *ops_of_mode(const struct disk_operations *operations, uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return operations->directory;
	case S_IFREG:
		return operations->file;
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
		return &special_ops;
	}
	return NULL;
}

/* Dirty pages count as blocks, as on Linux, though they have none yet: tar and others take a file
 * without blocks for one hole. It is the least that they will need: perhaps they overwrite some. */
void disk_inode_count(struct disk_inode *inode, uint32_t more)
{
	uint64_t block = 1ull << inode->mount->block_shift;
	uint32_t sectors = (inode->pages.dirty + more) * (PAGE_SIZE / SECTOR_SIZE);
	uint64_t most = ((inode->inode.size + block - 1) & -block) / SECTOR_SIZE;

	if (sectors > most)
		sectors = (uint32_t)most;
	if (inode->inode.blocks < sectors)
		inode->inode.blocks = sectors;
}

void disk_inode_changed(struct disk_inode *inode, bool is_data)
{
	struct disk_mount *mount = inode->mount;

	mount->number += mount->number == mount->committed;
	inode->changed_in = mount->number;
	if (is_data)
		inode->data_in = mount->number;
}

void disk_inode_reserve(struct disk_inode *inode)
{
	uint32_t blocks = 1u << (PAGE_SHIFT - inode->mount->block_shift);

	cached_file_reserve(&inode->pages, &inode->mount->reserved,
			    blocks + ext_map_worst(&inode->ext));
}

/* What the VFS knows better: a regular file's size, and times that are not stored yet. */
static void show_inode(struct disk_inode *inode)
{
	inode->inode.links = inode->ext.links;
	inode->inode.is_immutable = inode->ext.flags & EXT_FLAG_IMMUTABLE;
	inode->inode.is_append_only = inode->ext.flags & EXT_FLAG_APPEND;
	inode->inode.blocks = inode->ext.blocks;
	if (inode->pages.dirty > 0)
		disk_inode_count(inode, 0);
	if (inode->pages.unwritten > 0)
		disk_inode_reserve(inode);
	if (!inode_is(&inode->inode, S_IFREG))
		inode->inode.size = inode->ext.size;
	inode->mapping.length = 0;
	inode->asked = 0;
	if (inode->ext.changed > inode->inode.changed || !inode->is_changed)
		inode->inode.changed = inode->ext.changed;
	if (inode->is_changed)
		return;
	inode->inode.accessed = inode->ext.accessed;
	inode->inode.modified = inode->ext.modified;
}

void disk_inode_update(struct disk_inode *inode)
{
	disk_inode_changed(inode, true);
	show_inode(inode);
}

int disk_inode_unlock(struct disk_inode *inode, int result)
{
	disk_inode_update(inode);
	return disk_unlock(inode->mount, result);
}

struct disk_inode *disk_inode_allocate(struct disk_mount *mount)
{
	struct disk_inode *inode = pool_alloc(&pool);

	if (inode)
		inode->mount = mount;
	return inode;
}

void disk_inode_free(struct disk_inode *inode)
{
	pool_free(&pool, inode);
}

void disk_inode_insert(struct disk_inode *made)
{
	const struct ext_inode *ext = &made->ext;

	made->inode = (struct inode){
		.ops = made->mount->operations->inode,
		.file_ops = ops_of_mode(made->mount->operations, ext->mode),
		.references = 1,
		.filesystem = made->mount->filesystem,
		.block_size = 1u << made->mount->block_shift,
		.number = ext->number,
		.mode = ext->mode,
		.owner = ext->owner,
		.group = ext->group,
		.device = ext->device,
		.size = ext->size,
	};
	show_inode(made);
	cached_file_initialize(&made->pages, made->mount->operations->pages);
	made->pages.unit = 1u << made->mount->block_shift;
	made->changed_in = made->data_in = *evicted_in(made);
	made->in_mount.key = ext->number;
	tree_insert(&made->mount->inodes, &made->in_mount);
}

struct inode *disk_inode_use(struct disk_inode *inode)
{
	take_from_unused(inode);
	return inode_hold(&inode->inode);
}

int disk_inode_get(struct disk_mount *mount, uint32_t number, struct inode **found)
{
	struct disk_inode *inode = inode_of_node(tree_at_least(mount->inodes, number));

	if (inode && inode->inode.number == number) {
		*found = disk_inode_use(inode);
		return 0;
	}
	inode = disk_inode_allocate(mount);
	if (!inode)
		return -ENOMEM;
	int error = ext_inode_read(mount->fs, number, &inode->ext);

	if (error) {
		disk_inode_free(inode);
		return error;
	}
	disk_inode_insert(inode);
	*found = &inode->inode;
	return 0;
}

int disk_inode_store(struct disk_inode *inode)
{
	struct ext_inode *ext = &inode->ext;

	ext->mode = inode->inode.mode;
	ext->owner = inode->inode.owner;
	ext->group = inode->inode.group;
	ext->accessed = inode->inode.accessed = ext_time_kept(ext, inode->inode.accessed);
	ext->modified = inode->inode.modified = ext_time_kept(ext, inode->inode.modified);
	ext->changed = inode->inode.changed = ext_time_kept(ext, inode->inode.changed);
	inode->is_changed = false;
	inode->asked = 0;
	disk_inode_changed(inode, false);
	int error = ext_inode_write(ext);

	inode->is_changed |= error == -ENOMEM; /* the next one tries again */
	if (error && error != -EROFS && error != -ENOMEM) {
		errors_note(&inode->pages.errors, error);
		errors_note(&inode->mount->errors, error);
	}
	return error;
}

/* ---- all of a mount ---- */

bool disk_inode_any(const struct disk_mount *mount, bool (*visit)(struct disk_inode *inode))
{
	return find_inode_below(mount->inodes, 0, visit);
}

static bool has_new_times(struct disk_inode *inode)
{
	return inode->is_changed;
}

/* The one that is stored is held, so that nobody forgets it. After an error the others follow: an
 * unmount waits for each of them. Without memory the next call tries again. */
int disk_store_all(struct disk_mount *mount)
{
	struct disk_inode *inode;
	int error = 0;

	mutex_lock(&mount->lock);
	for (uint64_t next = 0; (inode = find_inode_below(mount->inodes, next, has_new_times));) {
		next = inode->inode.number + 1ull;
		inode_hold(&inode->inode);
		int failed = disk_inode_store(inode);

		error = error ? error : failed;
		mutex_unlock(&mount->lock); /* it may be the last reference by now */
		inode_put(&inode->inode);
		mutex_lock(&mount->lock);
	}
	return disk_unlock(mount, error);
}

/* ---- the last reference ---- */

static void evict_inode(struct disk_inode *inode)
{
	if (!disk_is_committed(inode->mount, inode->changed_in))
		*evicted_in(inode) = inode->mount->number;
	remove_from_tree(inode);
	cached_file_cut(&inode->pages, 0); /* nothing is dirty: does not sleep */
	disk_inode_free(inode);
}

/* Until there are at most this many: the longest unused one goes that has nothing to be written,
 * nor an error of write-back to be told, nor (unless `with_pages`) pages. Returns how many went. */
static uint32_t shrink_unused(uint32_t most, uint32_t looks, bool with_pages)
{
	uint32_t before = unused_count;

	for (; unused_count > most && looks > 0; looks--) {
		struct disk_inode *inode = list_entry(unused.next, struct disk_inode, in_unused);

		if (inode->inode.references > 0 || inode->pages.dirty || inode->is_changed ||
		    inode->pages.errors.is_unknown || (inode->pages.cache.pages && !with_pages)) {
			list_remove(&inode->in_unused);
			list_append(&unused, &inode->in_unused);
		} else {
			evict_inode(inode);
		}
	}
	return before - unused_count;
}

/* Nobody finds it any more by a name, but one that writes its pages back, or stores its times, may
 * have it at the moment: then that is the last one. Only under the lock it is certain: who waits
 * for the lock still has its reference. */
static void end_inode(struct disk_inode *inode)
{
	struct disk_mount *mount = inode->mount;

	inode->inode.references = 1;
	inode->inode.size = 0;
	cached_file_cut(&inode->pages, 0);
	mutex_lock(&mount->lock);
	if (--inode->inode.references == 0) {
		remove_from_tree(inode);
		ext_release(&inode->ext); /* if it fails, the next mount or e2fsck does it */
		disk_inode_free(inode);
	}
	mutex_unlock(&mount->lock);
}

void disk_inode_forget(struct inode *forgotten)
{
	struct disk_inode *inode = disk_inode(forgotten);

	if (forgotten->links == 0) {
		end_inode(inode);
		return;
	}
	take_from_unused(inode);
	list_append(&unused, &inode->in_unused);
	inode->is_unused = true;
	unused_count++;
	if (unused_most == 0)
		unused_most = page_free_count() / MEMORY_PART * (PAGE_SIZE / sizeof(*inode));
	if (unused_count > unused_most)
		shrink_unused(unused_most, LOOKS, true);
}

/* One with pages stays: those that nobody uses go one by one (mm/second_chance.c), and then it
 * does. */
uint32_t disk_inodes_give_back(uint32_t count)
{
	return shrink_unused(unused_count > count ? unused_count - count : 0, unused_count, false);
}

void disk_inodes_shrink(void)
{
	shrink_unused(0, unused_count, true);
}

void disk_inode_forget_all(struct disk_mount *mount)
{
	while (mount->inodes)
		evict_inode(inode_of_node(mount->inodes));
}
