/*
 * New inodes with a name: files, directories, symbolic links, devices, pipes and sockets.
 *
 * Room for the name comes first, then the inode, then its contents, and the name last, which cannot
 * fail. So a full disk leaves nothing but room: an inode that got no contents is an orphan,
 * and is released after the transaction.
 *
 *	directory	a block with "." and ".."; 2 links, and the parent has one more
 *	symbolic link	up to 59 bytes of target in the inode, in place of a map; or a block
 *	device		its number, in the first two words of the map
 *	the others	nothing
 *
 * The first word has 8 bits for each half of a device's number (0x0801 is major 8, minor 1). A
 * number that needs more is in the second word, in the wider encoding.
 *
 * Calls for one mount are serialized. May wait for the drive.
 */
#include "fs/ext/directories.h"
#include "kernel/lib/errno.h"

static int fill_directory(struct ext_inode *inode, const struct ext_inode *parent)
{
	const struct ext_name dot = { ".", 1 }, up = { "..", 2 };
	struct ext_slot slot = { 0 };
	int error = ext_directory_grow(inode, &slot.logical, &slot.buffer);

	if (error)
		return error;
	inode->links = 2;
	ext_entry_put(&slot, &dot, inode);
	ext_entry_put(&slot, &up, parent);
	ext_directory_sum(inode, slot.logical, slot.buffer);
	return bcache_done(slot.buffer, 0);
}

/* A target that fits is in the map's place; a longer one in one block, with its length as the size.
 */
static int fill_symlink(struct ext_inode *inode, const char *target)
{
	struct cached_block *buffer;

	inode->size = strlen(target);
	if (ext_is_short_symlink(inode)) {
		inode->flags &= ~EXT_FLAG_EXTENTS;
		memset(inode->map, 0, sizeof(inode->map));
		memcpy(inode->map, target, inode->size);
		return 0;
	}
	int error = ext_block_add(inode, 0, &buffer);

	if (error)
		return error;
	memcpy(buffer->data, target, inode->size);
	return bcache_done(buffer, 0);
}

static int fill_inode(struct ext_inode *inode, const struct ext_inode *parent,
		      const struct ext_new *new)
{
	inode->links = 1;
	switch (new->mode >> 12) {
	case EXT_TYPE_DIRECTORY:
		return fill_directory(inode, parent);
	case EXT_TYPE_SYMLINK:
		return fill_symlink(inode, new->target);
	case EXT_TYPE_CHARACTER:
	case EXT_TYPE_BLOCK:
		inode->device = new->device;
	}
	return 0;
}

/* An inode with its contents, or nothing. *left: an orphan, which the caller is to release. */
static int make_inode(const struct ext_inode *parent, const struct ext_new *new,
		      struct ext_inode *out, bool *left)
{
	int error = ext_inode_new(parent, new, out);

	if (error)
		return error;
	error = fill_inode(out, parent, new) ?: ext_inode_write(out);
	if (!error)
		return 0;
	out->links = 0; /* on the disk, too: it may be the next mount that releases it */
	*left = ext_inode_write(out) == 0 && ext_orphan_add(out) == 0;
	if (!*left)
		ext_ask_for_check(out->fs);
	return error;
}

/* Room for the name first: then the inode, and last what cannot fail, the name itself. */
static int make_with_name(struct ext_inode *directory, const struct ext_name *name,
			  const struct ext_new *new, struct ext_inode *out, bool *left)
{
	struct ext_slot slot;
	int error = ext_name_room(directory, name, &slot);

	if (error)
		return error;
	error = make_inode(directory, new, out, left);
	if (error)
		return bcache_done(slot.buffer, error);
	ext_name_put(directory, &slot, name, out);
	if (ext_is_directory(out))
		ext_links_more(directory);
	ext_touch(directory);
	return 0;
}

/* What no inode is made of, or with. */
static int check_new(const struct ext_inode *directory, const struct ext_new *new)
{
	if (ext_entry_type(new->mode >> 12) == 0)
		return -EINVAL;
	if (new->mode >> 12 == EXT_TYPE_DIRECTORY)
		return ext_links_check(directory);
	if (new->mode >> 12 != EXT_TYPE_SYMLINK)
		return 0;
	if (*new->target == '\0')
		return -ENOENT;
	return strlen(new->target) >= directory->fs->summary.block_size ? -ENAMETOOLONG : 0;
}

int ext_create(struct ext_inode *directory, const struct ext_name *name, const struct ext_new *new,
	       struct ext_inode *out)
{
	struct ext_names_change change;
	bool left = false;
	int error = ext_name_check(directory, name) ?: check_new(directory, new)
			?: ext_names_begin(&change, directory, NULL, NULL, NULL);

	if (error)
		return error;
	error = make_with_name(directory, name, new, out, &left);
	error = ext_names_end(&change, error);
	if (left)
		ext_release(out);
	return error;
}
