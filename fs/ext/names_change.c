/*
 * Common to all changes of names: the transaction, the inodes in it, times, and link counts.
 *
 * An inode's link count says how many names it has. A directory has 2 for itself, its name and its
 * own ".", and one for the ".." of each directory in it:
 *
 *	mkdir d		d: 2				its parent: + 1
 *	mkdir d/a d/b	d: 4
 *	65,000 links	another d/x needs dir_nlink: then d has 1, which means "many", for good
 *	rmdir d		d: 0				its parent: - 1
 *
 * An inode without links may still be in use: it is an orphan until ext_release. Within a
 * transaction; calls for one mount are serialized. May wait for the drive.
 */
#include "fs/ext/directories.h"
#include "kernel/lib/errno.h"

/* Blocks of one change, at most: two names with a split each (two nodes and a block of names, for
 * each of which a bitmap, a descriptor and the map change), inodes, orphans, the superblock. */
#define BLOCKS 64

/* One more inode, unless it is there already. */
static int add_inode(struct ext_names_change *change, struct ext_inode *inode)
{
	for (unsigned i = 0; i < change->count; i++)
		if (change->inodes[i] == inode)
			return 0;
	if (!inode)
		return 0;
	int error = ext_inode_pin(inode->fs, inode->number, &change->blocks[change->count]);

	if (!error)
		change->inodes[change->count++] = inode;
	return error;
}

int ext_names_begin(struct ext_names_change *change, struct ext_inode *first,
		    struct ext_inode *second, struct ext_inode *third, struct ext_inode *fourth)
{
	struct ext_inode *inodes[EXT_CHANGED_INODES] = { first, second, third, fourth };
	int error = ext_begin(first->fs, BLOCKS);

	if (error)
		return error;
	*change = (struct ext_names_change){ .fs = first->fs };
	for (unsigned i = 0; i < EXT_CHANGED_INODES && !error; i++)
		error = add_inode(change, inodes[i]);
	return error ? ext_names_end(change, error) : 0;
}

int ext_names_end(struct ext_names_change *change, int error)
{
	for (unsigned i = 0; i < change->count; i++) {
		if (!error)
			error = ext_inode_write(change->inodes[i]);
		bcache_put(change->blocks[i]);
	}
	return ext_end(change->fs, error);
}

void ext_touch_inode(struct ext_inode *inode)
{
	inode->changed = ext_inode_now(inode);
}

int ext_links_check(const struct ext_inode *inode)
{
	if (inode->links < EXT_LINKS_MAX)
		return 0;
	if (ext_is_directory(inode) && ext_has_ro_compat(inode->fs, EXT_RO_COMPAT_DIR_NLINK))
		return 0;
	return -EMLINK;
}

void ext_links_more(struct ext_inode *inode)
{
	bool many = ext_is_directory(inode) && inode->links == 1;

	if (!many)
		inode->links = inode->links < EXT_LINKS_MAX ? inode->links + 1 : 1;
}

/* "Many" remains, since nobody has counted them. Neither goes a directory below its own 2, whatever
 * a damaged disk says. */
void ext_links_fewer(struct ext_inode *inode)
{
	if (inode->links > (ext_is_directory(inode) ? 2 : 0))
		inode->links--;
}

int ext_link_gone(struct ext_inode *inode)
{
	uint16_t links = inode->links;
	int error = 0;

	if (ext_is_directory(inode))
		inode->links = 0;
	else
		ext_links_fewer(inode);
	if (inode->links == 0)
		error = ext_orphan_add(inode);
	if (error)
		inode->links = links;
	else
		ext_touch_inode(inode);
	return error;
}
