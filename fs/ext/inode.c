/*
 * Inodes: from the table on disk to struct ext_inode, checked.
 *
 * Numbers begin at 1, and each group has the same number of inodes, so a number says where its
 * inode is. With 8192 inodes of 256 bytes per group, and blocks of 4096 bytes:
 *
 *	inode 12	group 0, index 11	byte 2816: block 0 of group 0's table, at 2816
 *	inode 8220	group 1, index 27	byte 6912: block 1 of group 1's table, at 2816
 *
 * What is checked here is relied on everywhere else: somebody has a name for it, the type exists,
 * the size is possible, no flag contradicts the features. The map in i_block is checked where it is
 * followed.
 */
#include "fs/ext/internal.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"

/* The upper four bits of the mode, as in stat(). */
static unsigned type_of(const struct ext_inode *inode)
{
	return inode->mode >> 12;
}

/* The three types that this driver treats differently. */
bool ext_is_directory(const struct ext_inode *inode)
{
	return type_of(inode) == EXT_TYPE_DIRECTORY;
}

bool ext_is_regular(const struct ext_inode *inode)
{
	return type_of(inode) == EXT_TYPE_REGULAR;
}

bool ext_is_symlink(const struct ext_inode *inode)
{
	return type_of(inode) == EXT_TYPE_SYMLINK;
}

/* Seven of the sixteen values mean something; a set of bits answers in one step. */
static bool type_exists(unsigned type)
{
	const unsigned types = 1u << EXT_TYPE_FIFO | 1u << EXT_TYPE_CHARACTER |
			       1u << EXT_TYPE_DIRECTORY | 1u << EXT_TYPE_BLOCK |
			       1u << EXT_TYPE_REGULAR | 1u << EXT_TYPE_SYMLINK |
			       1u << EXT_TYPE_SOCKET;

	return types >> type & 1;
}

/* i_blocks is in sectors, or (HUGE_FILE) in blocks of the file system. */
static uint64_t sectors_used(const struct ext_fs *fs, const struct ext_disk_inode *disk)
{
	uint64_t count = disk->i_blocks_lo;

	if (!ext_has_ro_compat(fs, EXT_RO_COMPAT_HUGE_FILE))
		return count;
	count |= (uint64_t)disk->l_i_blocks_high << 32;
	return disk->i_flags & EXT_FLAG_HUGE_FILE ? count << (fs->block_shift - 9) : count;
}

/* i_size_high belongs to regular files; elsewhere the word had another use. */
static void convert(const struct ext_disk_inode *disk, struct ext_inode *out)
{
	out->mode = disk->i_mode;
	out->links = disk->i_links_count;
	out->flags = disk->i_flags;
	out->size = disk->i_size_lo;
	if (ext_is_regular(out))
		out->size |= (uint64_t)disk->i_size_high << 32;
	out->blocks = sectors_used(out->fs, disk);
	memcpy(out->map, disk->i_block, sizeof(out->map));
}

/* How many blocks of a file the map has numbers for, holes included: twelve pointers and three
 * trees of them, or what extents can count in 32 bits. A file cannot be larger, however sparse it
 * is. */
static uint64_t blocks_in_reach(const struct ext_inode *inode)
{
	uint64_t slots = inode->fs->summary.block_size / sizeof(uint32_t);

	if (inode->flags & EXT_FLAG_EXTENTS)
		return UINT32_MAX;
	return 12 + slots + slots * slots + slots * slots * slots;
}

/* Directories are whole blocks, and no more than there are; a symbolic link is one block at most.
 */
static bool size_possible(const struct ext_inode *inode)
{
	const struct ext_summary *summary = &inode->fs->summary;
	uint64_t size = inode->size;

	if (ext_is_directory(inode))
		return size > 0 && (size & (summary->block_size - 1)) == 0 &&
		       size >> inode->fs->block_shift <= summary->blocks;
	if (ext_is_symlink(inode))
		return size > 0 && size <= summary->block_size;
	return size <= blocks_in_reach(inode) << inode->fs->block_shift;
}

/* Refuses what no file can have. The features were checked: a flag of one that is off is damage. */
static int check(const struct ext_inode *inode)
{
	const bool extents = inode->flags & EXT_FLAG_EXTENTS;

	if (inode->links == 0)
		return ext_corrupt_inode(inode, "not in use: it has no links");
	if (!type_exists(type_of(inode)))
		return ext_corrupt_inode(inode, "mode 0%o is no type of file", inode->mode);
	if (extents && !ext_has_incompat(inode->fs, EXT_INCOMPAT_EXTENTS))
		return ext_corrupt_inode(inode, "extents, but the file system has none");
	if (inode->flags & EXT_FLAG_INLINE_DATA)
		return ext_corrupt_inode(inode, "inline data, but the file system has none");
	if (!size_possible(inode))
		return ext_corrupt_inode(inode, "size %ju", inode->size);
	return 0;
}

/* The group's descriptor was checked at mount time; ext_inode_table checks it again for nothing, in
 * the cache. */
int ext_inode_read(struct ext_fs *fs, uint32_t number, struct ext_inode *out)
{
	uint32_t group = (number - 1) / fs->super.s_inodes_per_group;
	uint32_t offset = (number - 1) % fs->super.s_inodes_per_group * fs->inode_size;
	struct cached_block *buffer;
	uint64_t table;
	int error;

	/* Inode 0 does not exist: in a directory it marks an entry that is not in use. */
	if (number == 0 || number > fs->summary.inodes)
		return -EINVAL;
	error = ext_inode_table(fs, group, &table);
	if (error)
		return error;
	error = bcache_get(fs->device, table + (offset >> fs->block_shift), fs->summary.block_size,
			   BLOCK_OTHER, &buffer);
	if (error)
		return error;
	out->fs = fs;
	out->number = number;
	offset &= fs->summary.block_size - 1;
	convert((const struct ext_disk_inode *)(buffer->data + offset), out);
	bcache_put(buffer);
	return check(out);
}
