/*
 * Inodes, written: from struct ext_inode back to the table on disk.
 *
 * What the copy has replaces what the disk has; everything else stays as it is: attributes inside
 * the inode, fields of other systems, and i_dtime, which links the orphans (orphan.c). Times get
 * their nanoseconds if the inode has room for them:
 *
 *	1.5 s after 2^31	i_mtime 0x80000001, i_mtime_extra 500000000 << 2 | 1
 *
 * Seconds are signed in i_mtime, so the two bits of i_mtime_extra count what is missing in 2^32.
 * The caller has begun a change.
 */
#include "fs/ext/inodes.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"

/* The inode's block of the table, as a part of the transaction: from now on writing it cannot fail.
 */
int ext_inode_pin(struct ext_fs *fs, uint32_t number, struct cached_block **out)
{
	int error = ext_inode_block(fs, number, out);

	return error ? error : ext_change_or_put(fs, *out);
}

/* A change of one inode. The pin is the mount's, which has one such change at a time. */
int ext_inode_begin(struct ext_inode *inode)
{
	int error = ext_begin(inode->fs, EXT_CREDITS);

	if (error)
		return error;
	error = ext_inode_pin(inode->fs, inode->number, &inode->fs->pin);
	return error ? ext_end(inode->fs, error) : 0;
}

/* Where data must be safe at once (data=journal), settling it is a part of the call. */
int ext_inode_end(struct ext_inode *inode, int error)
{
	bcache_put(inode->fs->pin);
	return ext_end(inode->fs, error) ? error : ext_settle(inode->fs);
}

int ext_inode_write_after(struct ext_inode *inode, int error)
{
	int written = ext_inode_write(inode);

	return error ? error : written;
}

/* Without `extra` the nanoseconds are lost, and so are times after 2038. */
static uint32_t split_time(int64_t time, uint32_t *extra)
{
	uint32_t nanoseconds;
	int64_t seconds = ext_seconds(time, &nanoseconds);

	if (extra)
		*extra = nanoseconds << 2 | (uint32_t)((seconds - (int32_t)seconds) >> 32 & 3);
	return (uint32_t)seconds;
}

/* An inode of 128 bytes has no room for fractions, nor for the time of its creation. */
static void put_times(const struct ext_inode *inode, struct ext_disk_inode_large *disk)
{
	size_t end = offsetof(struct ext_disk_inode_large, i_crtime_extra) + sizeof(uint32_t);
	bool large = ext_inode_has(inode->fs, disk, end);
	struct ext_disk_inode *first = &disk->first;

	first->i_atime = split_time(inode->accessed, large ? &disk->i_atime_extra : NULL);
	first->i_mtime = split_time(inode->modified, large ? &disk->i_mtime_extra : NULL);
	first->i_ctime = split_time(inode->changed, large ? &disk->i_ctime_extra : NULL);
	if (large)
		disk->i_crtime = split_time(inode->created, &disk->i_crtime_extra);
}

/* i_blocks is in sectors of 512 bytes while 32 bits can count them, 48 bits with huge_file, and
 * beyond that in blocks of the file system. */
static void put_blocks(struct ext_inode *inode, struct ext_disk_inode *disk)
{
	uint64_t count = inode->blocks;

	inode->flags &= ~EXT_FLAG_HUGE_FILE;
	if (count >> 48 != 0) {
		inode->flags |= EXT_FLAG_HUGE_FILE;
		count >>= inode->fs->block_shift - 9;
	}
	disk->i_blocks_lo = (uint32_t)count;
	if (ext_has_ro_compat(inode->fs, EXT_RO_COMPAT_HUGE_FILE))
		disk->l_i_blocks_high = (uint16_t)(count >> 32);
}

/* Devices have their number in the map: a small one in the first word. */
static void put_map(const struct ext_inode *inode, struct ext_disk_inode *disk)
{
	unsigned type = inode->mode >> 12;

	memcpy(disk->i_block, inode->map, sizeof(disk->i_block));
	if (type == EXT_TYPE_CHARACTER || type == EXT_TYPE_BLOCK) {
		disk->i_block[0] = inode->device < 65536 ? inode->device : 0;
		disk->i_block[1] = inode->device < 65536 ? 0 : inode->device;
	}
}

/* Sizes of directories and links have 32 bits; what shares a field with other systems is Linux's.
 */
static void put_fields(struct ext_inode *inode, struct ext_disk_inode *disk)
{
	disk->i_mode = inode->mode;
	disk->i_uid = (uint16_t)inode->owner;
	disk->l_i_uid_high = (uint16_t)(inode->owner >> 16);
	disk->i_gid = (uint16_t)inode->group;
	disk->l_i_gid_high = (uint16_t)(inode->group >> 16);
	disk->i_links_count = inode->links;
	disk->i_generation = inode->generation;
	disk->i_size_lo = (uint32_t)inode->size;
	if (ext_is_regular(inode))
		disk->i_size_high = (uint32_t)(inode->size >> 32);
	disk->i_file_acl_lo = (uint32_t)inode->attributes;
	if (ext_has_incompat(inode->fs, EXT_INCOMPAT_64BIT))
		disk->l_i_file_acl_high = (uint16_t)(inode->attributes >> 32);
	put_blocks(inode, disk);
	disk->i_flags = inode->flags;
	put_map(inode, disk);
}

/* Checksums for those inodes of the block that have changed. */
static void seal_inodes(struct cached_block *buffer)
{
	const size_t end = offsetof(struct ext_disk_inode_large, i_checksum_hi) + sizeof(uint16_t);
	const struct ext_fs *fs = buffer->seal_for;

	for (uint32_t left = buffer->seal_at; left != 0; left &= left - 1) {
		uint32_t place = (uint32_t)__builtin_ctz(left);
		uint32_t number = buffer->seal_seed + place;
		struct ext_disk_inode_large *disk = ext_inode_in(fs, number, buffer);
		uint32_t checksum = ext_inode_checksum(fs, number, disk);

		disk->first.l_i_checksum_lo = (uint16_t)checksum;
		if (ext_inode_has(fs, disk, end))
			disk->i_checksum_hi = (uint16_t)(checksum >> 16);
	}
}

void ext_inode_changed(const struct ext_fs *fs, uint32_t number, struct cached_block *buffer)
{
	uint32_t place = ext_inode_place(fs, number);

	if (!ext_has_checksums(fs))
		return;
	buffer->verified |= 1u << place;
	buffer->seal_at = 1u << place | (buffer->seal == seal_inodes ? buffer->seal_at : 0);
	buffer->seal_seed = number - place;
	buffer->seal_for = fs;
	buffer->seal = seal_inodes;
}

/* The first file of 2 GiB sets a feature: drivers of before 1997 have signed sizes, and must not
 * write.
 */
static void note_large_file(struct ext_inode *inode)
{
	struct ext_super_block *super = &inode->fs->super;

	if (!ext_is_regular(inode) || inode->size < (uint64_t)1 << 31 ||
	    super->s_feature_ro_compat & EXT_RO_COMPAT_LARGE_FILE)
		return;
	super->s_feature_ro_compat |= EXT_RO_COMPAT_LARGE_FILE;
	inode->fs->super_changed = true;
}

/* Everything that the copy has, whichever of it has changed: the block is in memory anyway. */
int ext_inode_write(struct ext_inode *inode)
{
	struct ext_fs *fs = inode->fs;
	struct cached_block *buffer;
	int error = ext_begin(fs, 1);

	if (error)
		return error;
	error = ext_inode_pin(fs, inode->number, &buffer);
	if (!error) {
		struct ext_disk_inode_large *disk = ext_inode_in(fs, inode->number, buffer);

		put_fields(inode, &disk->first);
		put_times(inode, disk);
		ext_inode_changed(fs, inode->number, buffer);
		note_large_file(inode);
		bcache_put(buffer);
	}
	return ext_end(fs, error);
}
