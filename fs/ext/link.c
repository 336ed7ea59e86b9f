/*
 * One name more for an inode, or one fewer.
 *
 * Both change a block of the directory, the directory's times and the inode's link count, as one
 * change. An inode without names is an orphan: it is freed when nobody has it open any more
 * (ext_release), or, after a power cut, at the next mount.
 *
 * Calls for one mount are serialized. May wait for the drive.
 */
#include "fs/ext/directories.h"
#include "kernel/lib/errno.h"

int ext_link(struct ext_inode *directory, const struct ext_name *name, struct ext_inode *inode)
{
	struct ext_names_change change;
	struct ext_slot slot;
	int error = ext_name_check(directory, name);

	if (!error)
		error = ext_is_directory(inode) ? -EPERM : ext_links_check(inode);
	if (!error && inode->links == 0)
		error = -ENOENT; /* it is an orphan */
	if (!error)
		error = ext_names_begin(&change, directory, inode, NULL, NULL);
	if (error)
		return error;
	error = ext_name_room(directory, name, &slot);
	if (!error) {
		ext_name_put(directory, &slot, name, inode);
		ext_links_more(inode);
		ext_touch_inode(inode);
		ext_touch(directory);
	}
	return ext_names_end(&change, error);
}

/* The part of a removal that may fail comes first, and ends with the inode's link. */
static int drop_ext_name(struct ext_inode *directory, const struct ext_name *name,
			 struct ext_inode *inode)
{
	struct ext_slot slot;
	int error = ext_name_own(directory, name, inode, &slot);

	if (error)
		return error;
	error = ext_link_gone(inode);
	if (error)
		return bcache_done(slot.buffer, error);
	ext_name_drop(directory, &slot);
	if (ext_is_directory(inode))
		ext_links_fewer(directory);
	ext_touch(directory);
	return 0;
}

/* unlink and rmdir. What it refuses it says before it begins a change. */
int ext_remove(struct ext_inode *directory, const struct ext_name *name, struct ext_inode *inode)
{
	struct ext_names_change change;
	int error = ext_name_check(directory, name);

	if (!error && ext_is_directory(inode))
		error = ext_directory_empty(inode);
	if (!error)
		error = ext_names_begin(&change, directory, inode, NULL, NULL);
	if (error)
		return error;
	return ext_names_end(&change, drop_ext_name(directory, name, inode));
}
