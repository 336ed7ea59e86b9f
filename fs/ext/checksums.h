/* Checksums of metadata. */
#pragma once

#include "fs/ext/mount.h"
#include "fs/jbd2/checksum.h"

/* How ext_corrupt says that a checksum is not that of the contents. The result is -EBADMSG then. */
#define EXT_CHECKSUM_WRONG "checksum 0x%08x, but the contents give 0x%08x"
static inline uint32_t ext_rotate_left(uint32_t value, unsigned bits)
{
	return value << bits | value >> (32 - bits);
}

/* The seed of all checksums of the file system, and of those of an inode's blocks. */
uint32_t ext_checksum_seed(const struct ext_fs *fs);
uint32_t ext_inode_seed(const struct ext_inode *inode);

uint32_t ext_super_checksum(const struct ext_super_block *super);
uint16_t ext_group_checksum(const struct ext_fs *fs, uint32_t group,
			    const struct ext_group_desc *descriptor);
uint32_t ext_inode_checksum(const struct ext_fs *fs, uint32_t number,
			    const struct ext_disk_inode_large *disk);

/* The checksum that an inode on the disk has, and that of its contents. Whether they are the same.
 */
bool ext_inode_sums(const struct ext_fs *fs, uint32_t number,
		    const struct ext_disk_inode_large *disk, uint32_t *found, uint32_t *checksum);

/* Compares the checksum of what was read from the disk: of an inode, an extent block (whose header
 * was checked), all descriptors in a block of which `group` is the first. -EBADMSG, with a message.
 */
int ext_inode_verify(const struct ext_inode *inode, struct cached_block *buffer,
		     const struct ext_disk_inode_large *disk);
int ext_extent_verify(const struct ext_inode *inode, const struct cached_block *buffer);
int ext_groups_verify(const struct ext_fs *fs, uint32_t group, const uint8_t *descriptors);

/* Of a block of extended attributes; and the same, written into it. */
uint32_t ext_attributes_checksum(const struct ext_fs *fs, uint64_t block, const uint8_t *data);
void ext_attributes_seal(const struct ext_fs *fs, uint64_t block, uint8_t *data);
