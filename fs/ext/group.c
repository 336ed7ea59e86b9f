/*
 * Block groups: where the descriptors are, and where they say that the inodes are.
 *
 * A file system is cut into groups of equal size, and each has a descriptor. 4 KiB blocks, 32768
 * blocks and 8192 inodes per group, descriptors of 32 bytes:
 *
 *	block 0		the superblock, 1024 bytes from the start
 *	block 1		descriptors of groups 0 to 127, 128 in a block
 *	block 2		descriptors of groups 128 to 255
 *	...
 *	group 130: block 2, byte 64: bg_inode_table is the first block of its inode table
 *
 * With meta_bg a block of descriptors is at the beginning of the groups that it describes instead,
 * after a copy of the superblock if that group has one: so a file system can grow without moving
 * what comes after the descriptors.
 */
#include "fs/ext/internal.h"
#include "kernel/lib/string.h"

/* Whether a group that begins a block of descriptors also begins with a copy of the superblock.
 * With sparse_super none does: copies are in groups 3^n, 5^n and 7^n, and such a group is even. */
static bool has_superblock(const struct ext_fs *fs, uint32_t group)
{
	const struct ext_super_block *super = &fs->super;

	if (super->s_feature_compat & EXT_COMPAT_SPARSE_SUPER2)
		return group == super->s_backup_bgs[0] || group == super->s_backup_bgs[1];
	return !ext_has_ro_compat(fs, EXT_RO_COMPAT_SPARSE_SUPER);
}

/* The disk block that holds block `index` of the descriptors: after the superblock or, with
 * meta_bg, at the beginning of the first group that it describes. */
static uint64_t descriptor_block(const struct ext_fs *fs, uint32_t index)
{
	const struct ext_super_block *super = &fs->super;
	uint32_t super_block = EXT_SUPER_SECTOR >> (fs->block_shift - 9);
	uint32_t group = index * (fs->summary.block_size / fs->summary.descriptor_size);

	if (!ext_has_incompat(fs, EXT_INCOMPAT_META_BG) || index < super->s_first_meta_bg ||
	    index == 0)
		return super_block + 1 + (uint64_t)index;
	return super->s_first_data_block + (uint64_t)group * super->s_blocks_per_group +
	       has_superblock(fs, group);
}

/* Copies a group's descriptor; what a small one has not is zero. */
static int read_descriptor(const struct ext_fs *fs, uint32_t group, struct ext_group_desc *out)
{
	uint32_t size = fs->summary.descriptor_size;
	uint32_t in_block = fs->summary.block_size / size;
	uint64_t block = descriptor_block(fs, group / in_block);
	struct cached_block *buffer;
	int error;

	if (!ext_range_valid(fs, block, 1))
		return ext_corrupt(fs, "descriptors", "block %ju is outside the file system",
				   block);
	error = bcache_get(fs->device, block, fs->summary.block_size, BLOCK_OTHER, &buffer);
	if (error)
		return error;
	memset(out, 0, sizeof(*out));
	memcpy(out, buffer->data + group % in_block * size,
	       size < sizeof(*out) ? size : sizeof(*out));
	bcache_put(buffer);
	return 0;
}

/* The table must be inside the file system as a whole: then every inode of the group is. */
int ext_inode_table(const struct ext_fs *fs, uint32_t group, uint64_t *table)
{
	uint32_t bytes = fs->super.s_inodes_per_group * fs->inode_size;
	uint32_t blocks = (bytes + fs->summary.block_size - 1) >> fs->block_shift;
	struct ext_group_desc descriptor;
	int error = read_descriptor(fs, group, &descriptor);

	if (error)
		return error;
	*table = descriptor.bg_inode_table_lo | (uint64_t)descriptor.bg_inode_table_hi << 32;
	if (!ext_range_valid(fs, *table, blocks))
		return ext_corrupt(fs, "descriptors",
				   "group %u: inode table in block %ju, outside the file system",
				   group, *table);
	return 0;
}
