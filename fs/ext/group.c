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
#include "fs/ext/inodes.h"
#include "fs/jbd2/journal.h"
#include "kernel/lib/divide.h"
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
	return ext_group_first(fs, group) + has_superblock(fs, group);
}

/* Gets the block of a group's descriptor, and the descriptor in it. */
static int get_descriptor(const struct ext_fs *fs, uint32_t group, struct cached_block **buffer,
			  uint8_t **descriptor)
{
	uint32_t size = fs->summary.descriptor_size;
	uint32_t in_block = fs->summary.block_size / size;
	uint64_t block = descriptor_block(fs, group / in_block);

	if (!ext_range_valid(fs, block, 1))
		return ext_corrupt(fs, "descriptors", "block %ju is outside the file system",
				   block);
	int error = ext_block_read(fs, block, BLOCK_OTHER, buffer);

	if (error)
		return error;
	if (!(*buffer)->verified)
		error = ext_groups_verify(fs, group - group % in_block, (*buffer)->data);
	if (error)
		return bcache_done(*buffer, error);
	(*buffer)->verified = true;
	*descriptor = (*buffer)->data + group % in_block * size;
	return 0;
}

int ext_group_read(const struct ext_fs *fs, uint32_t group, struct ext_group_desc *out)
{
	struct cached_block *buffer;
	uint8_t *descriptor;
	int error = get_descriptor(fs, group, &buffer, &descriptor);

	if (error)
		return error;
	memset(out, 0, sizeof(*out));
	memcpy(out, descriptor, ext_descriptor_known(fs));
	return bcache_done(buffer, 0);
}

int ext_group_write(struct ext_fs *fs, uint32_t group, struct ext_group_desc *descriptor)
{
	struct cached_block *buffer;
	uint8_t *place;
	int error = get_descriptor(fs, group, &buffer, &place);

	if (error)
		return error;
	error = ext_change(fs, buffer);
	if (!error) {
		descriptor->bg_checksum = ext_group_checksum(fs, group, descriptor);
		memcpy(place, descriptor, ext_descriptor_known(fs));
	}
	return bcache_done(buffer, error);
}

uint64_t ext_group_first(const struct ext_fs *fs, uint32_t group)
{
	return fs->super.s_first_data_block + (uint64_t)group * fs->super.s_blocks_per_group;
}

/* Where blocks of an inode should be if nothing tells better: near it. */
uint64_t ext_inode_goal(const struct ext_inode *inode)
{
	uint32_t index;

	return ext_group_first(inode->fs, ext_group_of_inode(inode->fs, inode->number, &index));
}

/* The last group may be shorter. */
uint32_t ext_group_blocks(const struct ext_fs *fs, uint32_t group)
{
	uint64_t rest = fs->summary.blocks - ext_group_first(fs, group);

	return rest < fs->super.s_blocks_per_group ? (uint32_t)rest : fs->super.s_blocks_per_group;
}

/* Of a block, and its number in the group. */
uint32_t ext_group_of(const struct ext_fs *fs, uint64_t block, uint32_t *index)
{
	return (uint32_t)divide64(block - fs->super.s_first_data_block,
				  fs->super.s_blocks_per_group, index);
}

/* Is number a power of base? 1 is one. */
static bool is_power(uint32_t number, uint32_t base)
{
	while (number > 1 && number % base == 0)
		number /= base;
	return number == 1;
}

/* Whether a group has a copy of the superblock: with sparse_super groups 0, 1 and the powers of 3,
 * 5 and 7. */
static bool has_copy(const struct ext_fs *fs, uint32_t group)
{
	if (group == 0 || fs->super.s_feature_compat & EXT_COMPAT_SPARSE_SUPER2 ||
	    !ext_has_ro_compat(fs, EXT_RO_COMPAT_SPARSE_SUPER))
		return group == 0 || has_superblock(fs, group);
	return is_power(group, 3) || is_power(group, 5) || is_power(group, 7);
}

/* With the superblock go all descriptors, and room for more; with meta_bg the first, second and
 * last group of those that a block describes have this block instead. */
static uint32_t overhead(const struct ext_fs *fs, uint32_t group)
{
	const struct ext_super_block *super = &fs->super;
	uint32_t in_block = fs->summary.block_size / fs->summary.descriptor_size;
	uint32_t blocks = (fs->summary.groups + in_block - 1) / in_block;
	uint32_t place = group % in_block;
	bool is_meta = ext_has_incompat(fs, EXT_INCOMPAT_META_BG);

	if (is_meta)
		blocks = super->s_first_meta_bg;
	if (!is_meta || group / in_block < blocks)
		return has_copy(fs, group) ? 1 + blocks + super->s_reserved_gdt_blocks : 0;
	return has_copy(fs, group) + (place == 0 || place == 1 || place == in_block - 1);
}

/* A damaged superblock may reserve more than the group has. */
uint32_t ext_group_overhead(const struct ext_fs *fs, uint32_t group)
{
	uint32_t taken = overhead(fs, group), most = ext_group_blocks(fs, group);

	return taken < most ? taken : most;
}

uint32_t ext_table_blocks(const struct ext_fs *fs)
{
	uint32_t bytes = fs->super.s_inodes_per_group * fs->inode_size;

	return (bytes + fs->summary.block_size - 1) >> fs->block_shift;
}

/* The table must be inside the file system as a whole: then every inode of the group is. It never
 * moves. */
int ext_inode_table(struct ext_fs *fs, uint32_t group, uint64_t *table)
{
	struct ext_table *known = &fs->tables[group % EXT_TABLES];
	struct ext_group_desc descriptor;

	*table = known->block;
	if (known->group == group + 1)
		return 0;
	int error = ext_group_read(fs, group, &descriptor);

	if (error)
		return error;
	*table = EXT_GET64(&descriptor, bg_inode_table);
	if (!ext_range_valid(fs, *table, ext_table_blocks(fs)))
		return ext_corrupt(fs, "descriptors",
				   "group %u: inode table in block %ju, outside the file system",
				   group, *table);
	*known = (struct ext_table){ group + 1, *table };
	return 0;
}

int ext_groups_check(const struct ext_fs *fs, uint64_t *blocks, uint32_t *inodes)
{
	*blocks = *inodes = 0;
	if (fs->wrong_group != 0)
		return ext_corrupt(fs, "descriptors",
				   "group %u: a bitmap or its inode table is something else's",
				   fs->wrong_group - 1);
	for (uint32_t group = 0; group < fs->summary.groups; group++) {
		struct ext_group_desc of;
		int error = ext_group_read(fs, group, &of);

		if (error)
			return error;
		*blocks += EXT_GET32(&of, bg_free_blocks_count);
		*inodes += EXT_GET32(&of, bg_free_inodes_count);
	}
	return 0;
}
