/*
 * The checksums of metadata: CRC-32C with metadata_csum, CRC-16 of descriptors with uninit_bg.
 *
 * The journal has the function (fs/jbd2/checksum.c). The ext file system starts with all ones and
 * does not invert the result, so a checksum can be continued over several pieces:
 *
 *	seed of the file system		its UUID, or a field of the superblock
 *	seed of an inode's blocks	seed, the inode's number, its generation
 *	an inode			seed of its blocks, the inode with its checksum as 0
 *	a descriptor			seed, the group's number, the descriptor; 16 bits of it
 *	a bitmap			seed, the bits that the group has; stored in the descriptor
 *	an extent block, a directory's	seed of its inode's blocks, all that is before the checksum
 *
 * So a block that is written to a wrong place, or that belonged to the inode's predecessor, has a
 * wrong checksum. (docs.kernel.org, ext4: "Checksums")
 */
#include "fs/ext/inodes.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"

/* CRC-16 (polynomial 0xA001), a bit at a time: for descriptors only, and not of newer images. */
static uint16_t crc16(uint16_t crc, const void *data, size_t length)
{
	const uint8_t *bytes = data;

	while (length-- > 0) {
		crc ^= *bytes++;
		for (int bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc >> 1 ^ (crc & 1 ? 0xA001 : 0));
	}
	return crc;
}

/* With a seed of its own the superblock may get another UUID, and all sums stay right. */
uint32_t ext_checksum_seed(const struct ext_fs *fs)
{
	if (ext_has_incompat(fs, EXT_INCOMPAT_CSUM_SEED))
		return fs->super.s_checksum_seed;
	return crc32c(~0u, fs->super.s_uuid, sizeof(fs->super.s_uuid));
}

/* The generation makes a block of an older inode with the same number wrong. */
static uint32_t inode_seed(const struct ext_fs *fs, uint32_t number, uint32_t generation)
{
	uint32_t crc = crc32c(fs->seed, &number, sizeof(number));

	return crc32c(crc, &generation, sizeof(generation));
}

uint32_t ext_inode_seed(const struct ext_inode *inode)
{
	return inode_seed(inode->fs, inode->number, inode->generation);
}

uint32_t ext_super_checksum(const struct ext_super_block *super)
{
	return crc32c(~0u, super, offsetof(struct ext_super_block, s_checksum));
}

/* Of the whole descriptor, as large as it is on the disk, with its checksum as 0. */
static uint16_t group_crc32c(const struct ext_fs *fs, uint32_t group,
			     const struct ext_group_desc *descriptor)
{
	uint32_t known = ext_descriptor_known(fs);
	uint32_t crc = crc32c(fs->seed, &group, sizeof(group));

	crc = crc32c_without(crc, descriptor, known, offsetof(struct ext_group_desc, bg_checksum),
			     sizeof(descriptor->bg_checksum));
	return (uint16_t)crc32c_zeros(crc, fs->summary.descriptor_size - known);
}

/* The older one leaves the checksum out instead. */
uint16_t ext_group_checksum(const struct ext_fs *fs, uint32_t group,
			    const struct ext_group_desc *descriptor)
{
	const size_t at = offsetof(struct ext_group_desc, bg_checksum);
	const uint8_t *bytes = (const uint8_t *)descriptor;

	if (ext_has_checksums(fs))
		return group_crc32c(fs, group, descriptor);
	if (!ext_has_ro_compat(fs, EXT_RO_COMPAT_GDT_CSUM))
		return 0;
	uint16_t crc = crc16(0xFFFF, fs->super.s_uuid, sizeof(fs->super.s_uuid));

	crc = crc16(crc, &group, sizeof(group));
	crc = crc16(crc, bytes, at);
	if (fs->summary.descriptor_size > EXT_DESCRIPTOR_SMALL)
		crc = crc16(crc, bytes + EXT_DESCRIPTOR_SMALL,
			    sizeof(*descriptor) - EXT_DESCRIPTOR_SMALL);
	return crc;
}

/* Both halves of an inode's checksum count as 0. An inode of 128 bytes has the lower one only. */
uint32_t ext_inode_checksum(const struct ext_fs *fs, uint32_t number,
			    const struct ext_disk_inode_large *disk)
{
	const size_t low = offsetof(struct ext_disk_inode, l_i_checksum_lo);
	const size_t high = offsetof(struct ext_disk_inode_large, i_checksum_hi);
	const size_t begin = sizeof(disk->first), size = sizeof(uint16_t);
	const uint8_t *rest = (const uint8_t *)disk + begin;
	uint32_t crc = inode_seed(fs, number, disk->first.i_generation);

	crc = crc32c_without(crc, disk, begin, low, size);
	if (ext_inode_has(fs, disk, high + size))
		return crc32c_without(crc, rest, fs->inode_size - begin, high - begin, size);
	return crc32c(crc, rest, fs->inode_size - begin);
}

/* ---- what was read is compared ---- */

bool ext_inode_sums(const struct ext_fs *fs, uint32_t number,
		    const struct ext_disk_inode_large *disk, uint32_t *found, uint32_t *checksum)
{
	const size_t end = offsetof(struct ext_disk_inode_large, i_checksum_hi) + sizeof(uint16_t);

	*found = disk->first.l_i_checksum_lo;
	*checksum = ext_inode_checksum(fs, number, disk);
	if (ext_inode_has(fs, disk, end))
		*found |= (uint32_t)disk->i_checksum_hi << 16;
	else
		*checksum &= 0xFFFF;
	return *found == *checksum;
}

/* Once in the life of the buffer; what was changed since has no checksum yet. */
int ext_inode_verify(const struct ext_inode *inode, struct cached_block *buffer,
		     const struct ext_disk_inode_large *disk)
{
	uint32_t bit = 1u << ext_inode_place(inode->fs, inode->number), found, checksum;

	if (!ext_has_checksums(inode->fs) || buffer->verified & bit)
		return 0;
	if (ext_inode_sums(inode->fs, inode->number, disk, &found, &checksum)) {
		buffer->verified |= bit;
		return 0;
	}
	ext_corrupt_inode(inode, EXT_CHECKSUM_WRONG, found, checksum);
	return -EBADMSG;
}

/* It is after the last entry that the node has room for. */
int ext_extent_verify(const struct ext_inode *inode, const struct cached_block *buffer)
{
	const struct ext_extent_node *node = (const struct ext_extent_node *)buffer->data;
	const uint8_t *end = (const uint8_t *)&node->entries[node->header.eh_max];
	uint32_t found = ((const struct ext_extent_tail *)end)->et_checksum;

	if (!ext_has_checksums(inode->fs))
		return 0;
	uint32_t checksum = crc32c(ext_inode_seed(inode), node, (size_t)(end - buffer->data));

	if (found == checksum)
		return 0;
	ext_corrupt_inode(inode, "extent node in block %ju: " EXT_CHECKSUM_WRONG, buffer->block,
			  found, checksum);
	return -EBADMSG;
}

/* As in Linux a mount that only reads goes on with a wrong one: what a descriptor says of places is
 * checked all the same. */
int ext_groups_verify(const struct ext_fs *fs, uint32_t group, const uint8_t *descriptors)
{
	uint32_t size = fs->summary.descriptor_size, end = fs->summary.block_size / size;
	struct ext_group_desc of = { 0 };

	if (!ext_has_group_checksums(fs))
		return 0;
	for (uint32_t i = 0; i < end && group + i < fs->summary.groups; i++) {
		memcpy(&of, descriptors + i * size, ext_descriptor_known(fs));
		if (of.bg_checksum == ext_group_checksum(fs, group + i, &of))
			continue;
		ext_corrupt(fs, "descriptors", "group %u: " EXT_CHECKSUM_WRONG, group + i,
			    of.bg_checksum, ext_group_checksum(fs, group + i, &of));
		if (!fs->options.read_only)
			return -EBADMSG;
	}
	return 0;
}

/* The block's number is part of it: attributes belong to no inode in particular. */
uint32_t ext_attributes_checksum(const struct ext_fs *fs, uint64_t block, const uint8_t *data)
{
	uint32_t crc = crc32c(fs->seed, &block, sizeof(block));

	return crc32c_without(crc, data, fs->summary.block_size,
			      offsetof(struct ext_xattr_header, h_checksum), sizeof(uint32_t));
}

void ext_attributes_seal(const struct ext_fs *fs, uint64_t block, uint8_t *data)
{
	struct ext_xattr_header *header = (struct ext_xattr_header *)data;

	if (ext_has_checksums(fs))
		header->h_checksum = ext_attributes_checksum(fs, block, data);
}
