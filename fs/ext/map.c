/*
 * From a block of a file to a block of the disk, in the format that the inode has.
 *
 * An answer is a run: "block 100 is at 7100, and 27 more follow it on the disk". So a reader of a
 * large file asks once per run and not once per block. What the two formats share is here: which
 * inodes have a map at all (a short symbolic link has its text in the same place), and that no run
 * goes beyond the end of the file.
 */
#include "fs/ext/mapping.h"
#include "kernel/lib/errno.h"

/* A device or a pipe has no contents on the disk; i_block means something else there. */
bool ext_has_map(const struct ext_inode *inode)
{
	return ext_is_regular(inode) || ext_is_directory(inode) ||
	       (ext_is_symlink(inode) && !ext_is_short_symlink(inode));
}

static int map(const struct ext_inode *inode, uint64_t logical, uint32_t most,
	       struct ext_mapping *out)
{
	*out = (struct ext_mapping){ .length = 1, .most = most };
	return inode->flags & EXT_FLAG_EXTENTS ? ext_map_extents(inode, logical, out)
					       : ext_map_pointers(inode, logical, out);
}

int ext_map_all(const struct ext_inode *inode, uint64_t logical, struct ext_mapping *out)
{
	return map(inode, logical, 0, out);
}

/* A block beyond the end is a hole of one block: not an error, so that callers need no check of
 * their own. */
int ext_map_some(const struct ext_inode *inode, uint64_t logical, uint32_t count,
		 struct ext_mapping *out)
{
	const struct ext_fs *fs = inode->fs;
	uint64_t blocks = (inode->size + fs->summary.block_size - 1) >> fs->block_shift;

	if (!ext_has_map(inode))
		return -EINVAL;
	*out = (struct ext_mapping){ .length = 1 };
	if (logical >= blocks)
		return 0;
	int error = map(inode, logical, count, out);

	out->length = ext_shorter(out->length, blocks - logical);
	return error;
}

int ext_map(const struct ext_inode *inode, uint64_t logical, struct ext_mapping *out)
{
	return ext_map_some(inode, logical, 0, out);
}
