/*
 * Inodes: from the table on disk to struct ext_inode, checked.
 *
 * Numbers begin at 1, and each group has the same number of inodes, so a number says where its
 * inode is. With 8192 inodes of 256 bytes per group, and blocks of 4096 bytes:
 *
 *	inode 12	group 0, index 11	byte 2816: block 0 of group 0's table, at 2816
 *	inode 8220	group 1, index 27	byte 6912: block 1 of group 1's table, at 2816
 *
 * The rest of the code relies on what is checked here: the inode has a link, the type exists, the
 * size is possible, no flag contradicts the features. The map in i_block is checked where it is
 * followed.
 */
#include "fs/ext/mapping.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"

/* The upper four bits of the mode, as in stat(). */
static unsigned type_of_mode(const struct ext_inode *inode)
{
	return inode->mode >> 12;
}

/* The three types that this driver treats differently. The upper four bits of the mode say which;
 * the other twelve are permissions, for the callers. */
bool ext_is_directory(const struct ext_inode *inode)
{
	return type_of_mode(inode) == EXT_TYPE_DIRECTORY;
}

bool ext_is_regular(const struct ext_inode *inode)
{
	return type_of_mode(inode) == EXT_TYPE_REGULAR;
}

bool ext_is_symlink(const struct ext_inode *inode)
{
	return type_of_mode(inode) == EXT_TYPE_SYMLINK;
}

/* Which flags an inode of this type can have: chattr says so, and a new inode inherits no others.
 */
uint32_t ext_flags_of(const struct ext_inode *inode)
{
	if (ext_is_directory(inode))
		return UINT32_MAX;
	return ext_is_regular(inode) ? EXT_FLAGS_OF_REGULAR : EXT_FLAGS_OF_OTHERS;
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

/* Seconds are signed, and the two lowest bits of `extra` continue them; the rest is ns. */
static int64_t time_of(uint32_t seconds, uint32_t extra)
{
	int64_t whole = (int32_t)seconds + ((int64_t)(extra & 3) << 32);

	return (int64_t)((uint64_t)whole * 1000000000 + (extra >> 2));
}

/* Inodes of 128 bytes have whole seconds, and no time of creation. */
static void convert_times(const struct ext_disk_inode_large *disk, struct ext_inode *out)
{
	const struct ext_disk_inode *first = &disk->first;
	const struct ext_disk_inode_large none = { .i_extra_isize = 0 };
	size_t end = offsetof(struct ext_disk_inode_large, i_crtime_extra) + sizeof(uint32_t);
	const struct ext_disk_inode_large *extra = ext_inode_has(out->fs, disk, end) ? disk : &none;

	out->whole_seconds = extra == &none;
	out->accessed = time_of(first->i_atime, extra->i_atime_extra);
	out->modified = time_of(first->i_mtime, extra->i_mtime_extra);
	out->changed = time_of(first->i_ctime, extra->i_ctime_extra);
	out->created = time_of(extra->i_crtime, extra->i_crtime_extra);
}

/* The number of a device is in the first word, or, if it is large, in the second one. */
static uint32_t device_of(const struct ext_disk_inode *disk)
{
	unsigned type = disk->i_mode >> 12;

	if (type != EXT_TYPE_CHARACTER && type != EXT_TYPE_BLOCK)
		return 0;
	return disk->i_block[0] != 0 ? disk->i_block[0] : disk->i_block[1];
}

/* i_size_high belongs to regular files; elsewhere the word had another use. */
static void convert_inode(const struct ext_disk_inode_large *large, struct ext_inode *out)
{
	const struct ext_disk_inode *disk = &large->first;

	out->mode = disk->i_mode;
	out->links = disk->i_links_count;
	out->owner = disk->i_uid | (uint32_t)disk->l_i_uid_high << 16;
	out->group = disk->i_gid | (uint32_t)disk->l_i_gid_high << 16;
	out->flags = disk->i_flags;
	out->generation = disk->i_generation;
	out->device = device_of(disk);
	out->size = disk->i_size_lo;
	if (ext_is_regular(out))
		out->size |= (uint64_t)disk->i_size_high << 32;
	out->blocks = sectors_used(out->fs, disk);
	out->attributes = ext_halves(out->fs, disk->i_file_acl_lo, disk->l_i_file_acl_high);
	memcpy(out->map, disk->i_block, sizeof(out->map));
	convert_times(large, out);
}

/* Twelve pointers and three trees of them, or what extents can count in 32 bits. */
/* Numbers of blocks have 32 bits in extents; pointers end with their third tree. */
uint64_t ext_blocks_in_reach(const struct ext_inode *inode)
{
	uint64_t slots = inode->fs->summary.block_size / sizeof(uint32_t);

	if (inode->flags & EXT_FLAG_EXTENTS)
		return UINT32_MAX;
	return 12 + slots + slots * slots + slots * slots * slots;
}

/* Without HUGE_FILE an inode counts sectors in 32 bits. As in Linux a file of pointers ends where
 * it could be full of data and still count them, with those of its map. */
uint64_t ext_size_limit(const struct ext_inode *inode)
{
	uint64_t reach = ext_blocks_in_reach(inode);
	uint32_t shift = inode->fs->block_shift, slots_shift = shift - 2, slots = 1u << slots_shift;
	uint64_t counted = UINT32_MAX >> (shift - 9);

	if (!ext_has_ro_compat(inode->fs, EXT_RO_COMPAT_HUGE_FILE) && counted < reach) {
		uint64_t third = counted - 12 - slots - (1u << 2 * slots_shift);

		reach = counted;
		if (!(inode->flags & EXT_FLAG_EXTENTS))
			reach -= 3 + slots + ((third + slots - 1) >> slots_shift) +
				 (third >> 2 * slots_shift) + 1;
	}
	return reach << shift;
}

/* Whether an inode counts any block but that of its attributes. */
static bool has_blocks(const struct ext_inode *inode)
{
	uint32_t sectors = inode->fs->summary.block_size / SECTOR_SIZE;

	return inode->blocks > (inode->attributes != 0 ? sectors : 0);
}

/* Directories are whole blocks, and no more than there are; a symbolic link is one block at most,
 * and a long one has it: else its text would be followed as a map, and freed. */
static bool size_possible(const struct ext_inode *inode)
{
	const struct ext_summary *summary = &inode->fs->summary;
	uint64_t size = inode->size;

	if (ext_is_directory(inode))
		return size > 0 && (size & (summary->block_size - 1)) == 0 &&
		       size >> inode->fs->block_shift <= summary->blocks;
	if (ext_is_symlink(inode))
		return size > 0 && size <= summary->block_size &&
		       (ext_is_short_symlink(inode) || has_blocks(inode));
	return size <= ext_blocks_in_reach(inode) << inode->fs->block_shift;
}

/* Refuses what no file can have. The features were checked: a flag of one that is off is damage. */
static int check_inode(const struct ext_inode *inode)
{
	const bool extents = inode->flags & EXT_FLAG_EXTENTS;

	if (!type_exists(type_of_mode(inode)))
		return ext_corrupt_inode(inode, "mode 0%o is not a type of file", inode->mode);
	if (extents && !ext_has_incompat(inode->fs, EXT_INCOMPAT_EXTENTS))
		return ext_corrupt_inode(inode, "extents, but the file system has none");
	if (inode->flags & EXT_FLAG_INLINE_DATA)
		return ext_corrupt_inode(inode, "inline data, but the file system has none");
	if (!size_possible(inode))
		return ext_corrupt_inode(inode, "size %ju", inode->size);
	return 0;
}

int ext_inode_block(struct ext_fs *fs, uint32_t number, struct cached_block **out)
{
	uint32_t index, group = ext_group_of_inode(fs, number, &index);
	uint32_t offset = index * fs->inode_size;
	uint64_t table;
	int error = ext_inode_table(fs, group, &table);

	if (error)
		return error;
	return ext_block_read(fs, table + (offset >> fs->block_shift), BLOCK_OTHER, out);
}

/* Whatever state it is in, in use or not: its number and its checksum are checked. */
int ext_inode_load(struct ext_fs *fs, uint32_t number, struct ext_inode *out)
{
	struct cached_block *buffer;

	/* Inode 0 does not exist: in a directory it marks an entry that is not in use. */
	if (number == 0 || number > fs->summary.inodes)
		return -EINVAL;
	int error = ext_inode_block(fs, number, &buffer);

	if (error)
		return error;
	const struct ext_disk_inode_large *disk = ext_inode_in(fs, number, buffer);

	out->fs = fs;
	out->number = number;
	convert_inode(disk, out);
	return bcache_done(buffer, ext_inode_verify(out, buffer, disk));
}

/* For what is in use: it has links, and its type, its size and its map go together. */
int ext_inode_read(struct ext_fs *fs, uint32_t number, struct ext_inode *out)
{
	int error = ext_inode_load(fs, number, out);

	if (error)
		return error;
	if (out->links == 0)
		return ext_corrupt_inode(out, "not in use: it has no links");
	return check_inode(out);
}
