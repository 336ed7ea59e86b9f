/*
 * Orphans: inodes whose work must be finished if the power goes before it is.
 *
 * Two kinds: files without a name that somebody still uses, and files that are being cut, in
 * several transactions. Both are in a list that begins in the superblock and goes on in the inodes'
 * i_dtime, which has no other use while an inode lives:
 *
 *	s_last_orphan 30	inode 30: i_dtime 12	inode 12: i_dtime 0, the last
 *
 * The next mount (mount_write.c), or e2fsck, frees those without links, and cuts the others to
 * their size. The newest is the first in the list; to remove one, the one before it is looked for
 * from the beginning. The caller has begun a change.
 */
#include "fs/ext/inodes.h"
#include "kernel/lib/errno.h"

/* Sets where the list goes on after an inode. */
static int set_next(struct ext_fs *fs, uint32_t number, uint32_t next)
{
	struct cached_block *buffer;
	int error = ext_inode_pin(fs, number, &buffer);

	if (error)
		return error;
	ext_inode_in(fs, number, buffer)->first.i_dtime = next;
	ext_inode_changed(fs, number, buffer);
	return bcache_done(buffer, 0);
}

/* Reserved inodes have no links, or no name, and are in use all the same. */
int ext_orphan_check(const struct ext_fs *fs, uint32_t number)
{
	if (number >= fs->first_inode && number <= fs->summary.inodes)
		return 0;
	return ext_corrupt(fs, "list of orphans", "inode %u, not %u to %u", number, fs->first_inode,
			   fs->summary.inodes);
}

static int get_next(struct ext_fs *fs, uint32_t number, uint32_t *next)
{
	struct cached_block *buffer;
	int error = ext_orphan_check(fs, number) ?: ext_inode_block(fs, number, &buffer);

	if (error)
		return error;
	*next = ext_inode_in(fs, number, buffer)->first.i_dtime;
	return bcache_done(buffer, 0);
}

/* The inode before this one in the list; 0: it is the first. -ENOENT: it is not there. */
static int find_before(struct ext_inode *inode, uint32_t *before)
{
	struct ext_fs *fs = inode->fs;
	uint32_t next = fs->super.s_last_orphan;

	*before = 0;
	for (uint32_t passed = 0; next != inode->number; passed++) {
		int error = 0;

		*before = next;
		if (next == 0 || passed > fs->summary.inodes)
			return -ENOENT;
		error = get_next(fs, *before, &next);
		if (error)
			return error;
	}
	return 0;
}

/* After a truncate that failed, the file is there already. */
int ext_orphan_add(struct ext_inode *inode)
{
	struct ext_super_block *super = &inode->fs->super;
	uint32_t before;
	int error = inode->fs->cut_left ? find_before(inode, &before) : -ENOENT;

	if (error != -ENOENT)
		return error;
	error = set_next(inode->fs, inode->number, super->s_last_orphan);
	if (error)
		return error;
	super->s_last_orphan = inode->number;
	inode->fs->super_changed = true;
	return 0;
}

int ext_orphan_remove(struct ext_inode *inode)
{
	struct ext_fs *fs = inode->fs;
	uint32_t before, next = 0;
	int error = find_before(inode, &before);

	if (error == -ENOENT)
		return ext_corrupt_inode(inode, "is not in the list of orphans");
	if (!error)
		error = get_next(fs, inode->number, &next);
	if (!error && before != 0)
		error = set_next(fs, before, next);
	if (error)
		return error;
	if (before == 0) {
		fs->super.s_last_orphan = next;
		fs->super_changed = true;
	}
	return set_next(fs, inode->number, 0);
}
