/*
 * New inodes: in which group, and the first free one there.
 *
 * A file goes to the group of its directory, so that what is read together is near. A directory
 * goes there too, if that group has at least as much room as groups have on average; but those in
 * the root begin a tree of their own, and each gets the next group that has room (after Orlov's
 * allocator of 4.4BSD, simplified):
 *
 *	/usr group 1	/var group 2	/var/mail group 2	/var/mail/ann group 2
 *
 * In a group it is always the lowest free inode. So what was never in use is at the end of the
 * table, and descriptors with checksums count it (bg_itable_unused): mkfs has not even written
 * that part, and the first call that uses an inode in one of its blocks writes the block as zeros.
 *
 * The caller has begun a change, and a failure in the middle has changed nothing.
 */
#include "fs/ext/allocation.h"
#include "fs/ext/inodes.h"
#include "kernel/lib/divide.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"

/* Whether a group has as many free inodes and blocks as asked for; or an error. One with a bitmap
 * that is wrong has none, whatever its descriptor says. */
static int has_room(const struct ext_fs *fs, uint32_t group, uint32_t inodes, uint32_t blocks)
{
	struct ext_group_desc descriptor;
	int error = ext_group_read(fs, group, &descriptor);

	if (error)
		return error;
	return !ext_bitmap_is_bad(fs, group, EXT_BITMAP_INODES) &&
	       EXT_GET32(&descriptor, bg_free_inodes_count) >= inodes &&
	       EXT_GET32(&descriptor, bg_free_blocks_count) >= blocks;
}

/* The first group with that much room, from `first` on, and around the end. -ENOSPC after all. */
static int find_group(const struct ext_fs *fs, uint32_t first, uint32_t inodes, uint32_t blocks,
		      uint32_t *out)
{
	for (uint32_t tried = 0; tried < fs->summary.groups; tried++) {
		uint32_t group = first + tried;

		if (group >= fs->summary.groups)
			group -= fs->summary.groups;
		int found = has_room(fs, group, inodes, blocks);

		if (found < 0)
			return found;
		*out = group;
		if (found)
			return 0;
	}
	return -ENOSPC;
}

/* A directory that finds no group with room as on average is content with a free inode, as files
 * are. -ENOSPC. */
static int choose_group(const struct ext_inode *parent, bool is_directory, uint32_t *out)
{
	struct ext_fs *fs = parent->fs;
	uint32_t index, group = ext_group_of_inode(fs, parent->number, &index);
	uint32_t inodes = fs->super.s_free_inodes_count / fs->summary.groups;
	uint32_t blocks = (uint32_t)divide64(ext_free_blocks(fs), fs->summary.groups, NULL);
	int error;

	if (is_directory && parent->number == EXT_ROOT_INODE)
		group = fs->next_group++ % fs->summary.groups;
	if (is_directory) {
		error = find_group(fs, group, inodes > 0 ? inodes : 1, blocks, out);
		if (error != -ENOSPC)
			return error;
	}
	return find_group(fs, group, 1, 0, out);
}

/* Inodes at the end of the table that were never in use; 0 without the field. */
static uint32_t unused_inodes(const struct ext_fs *fs, const struct ext_group_desc *descriptor)
{
	return ext_has_group_checksums(fs) ? EXT_GET32(descriptor, bg_itable_unused) : 0;
}

/* The counts after an inode was taken (or given back: then the table was in use that far). */
static void count_inode(struct ext_group_desc *descriptor, int change, bool is_directory)
{
	uint32_t inodes = EXT_GET32(descriptor, bg_free_inodes_count) - (uint32_t)change;
	uint32_t directories = EXT_GET32(descriptor, bg_used_dirs_count) + (uint32_t)change;

	EXT_PUT32(descriptor, bg_free_inodes_count, inodes);
	if (is_directory)
		EXT_PUT32(descriptor, bg_used_dirs_count, directories);
}

/* Whether an inode has names, whatever its bitmap says. What is in a part of the table that counts
 * as never used may be of an older file system, but for its checksum, where it is in zeros of mkfs,
 * or by its time. */
static bool is_live(const struct ext_bitmap *bitmap, uint32_t number,
		    const struct ext_disk_inode_large *disk, bool never_used)
{
	const struct ext_fs *fs = bitmap->fs;
	uint32_t found, checksum;

	if (disk->first.i_links_count == 0 || disk->first.i_dtime != 0)
		return false;
	if (!never_used)
		return true;
	if (ext_has_checksums(fs))
		return ext_inode_sums(fs, number, disk, &found, &checksum);
	return bitmap->descriptor.bg_flags & EXT_GROUP_INODE_ZEROED ||
	       disk->first.i_ctime >= fs->super.s_mkfs_time;
}

/* Inodes that have names are not overwritten: e2fsck can put that right. Of a part of the table
 * that was never used all are looked at, because its block is about to be written as zeros. */
static int check_free(const struct ext_bitmap *bitmap, uint32_t first, uint32_t count,
		      bool never_used)
{
	struct ext_fs *fs = bitmap->fs;

	for (uint32_t index = first; index < first + count; index++) {
		uint32_t number = bitmap->group * bitmap->bits + index + 1;
		struct cached_block *table;
		int error = ext_inode_block(fs, number, &table);

		if (error)
			return error;
		bool live = is_live(bitmap, number, ext_inode_in(fs, number, table), never_used);

		bcache_put(table);
		if (!live)
			continue;
		ext_bitmap_note_bad(fs, bitmap->group, EXT_BITMAP_INODES, 0);
		return ext_corrupt(fs, bitmap->name, "group %u: inode %u is free, but it has names",
				   bitmap->group, number);
	}
	return 0;
}

/* Gets the table's block of a new inode: one in which no inode was ever used has junk. */
static int get_table_block(const struct ext_bitmap *bitmap, uint32_t index,
			   struct cached_block **out)
{
	struct ext_fs *fs = bitmap->fs;
	uint32_t in_block = fs->summary.block_size / fs->inode_size;
	uint32_t first = index - index % in_block, all = bitmap->bits;
	uint32_t end = first + in_block < all ? first + in_block : all;
	uint64_t table;

	if (first < all - unused_inodes(fs, &bitmap->descriptor) ||
	    ext_bits_find(bitmap->buffer->data, NULL, first, end, true) < end)
		return check_free(bitmap, index, 1, false)
			   ?: ext_inode_block(fs, bitmap->group * all + index + 1, out);
	return check_free(bitmap, first, end - first, true)
		   ?: ext_inode_table(fs, bitmap->group, &table)
		   ?: bcache_get_zeroed(fs->device, table + index / in_block,
					fs->summary.block_size, out);
}

/* Marks inode `index` of a group as in use; *table is its block, in the transaction. The counts are
 * changed in the copy of the descriptor, which ext_bitmap_change writes: so they and the bit are
 * one change. */
static int take_from_table(struct ext_bitmap *bitmap, uint32_t index, bool is_directory,
			   struct cached_block **table)
{
	struct ext_group_desc *descriptor = &bitmap->descriptor;
	uint32_t rest = bitmap->bits - index - 1;
	int error = get_table_block(bitmap, index, table);

	if (error)
		return error;
	count_inode(descriptor, 1, is_directory);
	if (rest < unused_inodes(bitmap->fs, descriptor))
		EXT_PUT32(descriptor, bg_itable_unused, rest);
	error = ext_change(bitmap->fs, *table) ?: ext_bitmap_change(bitmap, index, 1, true);
	if (error)
		bcache_put(*table);
	return error;
}

/* Takes the lowest free inode of a group; *number is its number. Those below first_inode are the
 * file system's, whatever the bitmap says. */
static int take_in_group(struct ext_fs *fs, uint32_t group, bool is_directory, uint32_t *number,
			 struct cached_block **table)
{
	uint32_t first = group == 0 ? fs->first_inode - 1 : 0;
	struct ext_bitmap bitmap;
	int error = ext_bitmap_get(fs, group, EXT_BITMAP_INODES, &bitmap);

	if (error)
		return error;
	uint32_t index = ext_bits_find(bitmap.buffer->data, NULL, first, bitmap.bits, false);

	if (index == bitmap.bits)
		error =
		    ext_corrupt(fs, bitmap.name, "group %u: free inodes are reserved ones", group);
	else
		error = take_from_table(&bitmap, index, is_directory, table);
	*number = group * bitmap.bits + index + 1;
	return bcache_done(bitmap.buffer, error);
}

/* In the best group, or in the next one if its bitmap turns out to be damaged, or cannot be read.
 */
static int take_free_inode(const struct ext_inode *directory, bool is_directory, uint32_t *number,
			   struct cached_block **table)
{
	struct ext_fs *fs = directory->fs;
	uint32_t group;

	for (;;) {
		int error = choose_group(directory, is_directory, &group);

		if (error)
			return error;
		error = take_in_group(fs, group, is_directory, number, table);
		ext_bitmap_note_unreadable(fs, group, EXT_BITMAP_INODES, error);
		if (!error || fs->failed || !ext_bitmap_is_bad(fs, group, EXT_BITMAP_INODES))
			return error;
	}
}

/* The contents of a new inode: nothing, and an empty map where there is one. Devices and pipes have
 * none. The generation tells NFS, and the seed of checksums, this inode from the last one with its
 * number. */
static void fill_in(struct ext_inode *out, const struct ext_inode *directory, uint32_t number,
		    const struct ext_new *new)
{
	struct ext_fs *fs = directory->fs;
	const unsigned type = new->mode >> 12;
	struct ext_extent_header empty = {
		.eh_magic = EXT_EXTENT_MAGIC,
		.eh_max = (sizeof(out->map) - sizeof(empty)) / sizeof(struct ext_extent),
	};

	*out = (struct ext_inode){
		.fs = fs,
		.number = number,
		.mode = new->mode,
		.owner = new->owner,
		.group = new->group,
		.generation = ++fs->generation,
		.whole_seconds = fs->inode_size == EXT_OLD_INODE_SIZE,
	};
	out->accessed = out->modified = out->changed = out->created = ext_inode_now(out);
	out->flags = directory->flags & EXT_FLAGS_INHERITED & ext_flags_of(out);
	if (!ext_has_incompat(fs, EXT_INCOMPAT_EXTENTS) ||
	    (type != EXT_TYPE_REGULAR && type != EXT_TYPE_DIRECTORY && type != EXT_TYPE_SYMLINK))
		return;
	out->flags |= EXT_FLAG_EXTENTS;
	memcpy(out->map, &empty, sizeof(empty));
}

/* The inode gets all its bytes at once, also those after its fields: an old one's attributes would
 * be found there. */
int ext_inode_new(const struct ext_inode *directory, const struct ext_new *new,
		  struct ext_inode *out)
{
	struct ext_fs *fs = directory->fs;
	bool is_directory = new->mode >> 12 == EXT_TYPE_DIRECTORY;
	struct cached_block *table;
	uint32_t number;
	int error = take_free_inode(directory, is_directory, &number, &table);

	if (error)
		return error;
	fs->super.s_free_inodes_count--;
	fs->super_changed = true;
	fill_in(out, directory, number, new);
	struct ext_disk_inode_large *disk = ext_inode_in(fs, number, table);

	memset(disk, 0, fs->inode_size);
	if (fs->inode_size > EXT_OLD_INODE_SIZE)
		disk->i_extra_isize = sizeof(*disk) - EXT_OLD_INODE_SIZE;
	return bcache_done(table, ext_inode_write(out));
}

/* The inode on disk has a time of its end, and no links; 0 would say that it was never used, so the
 * first second of 1970 counts as the second one. */
static void bury(struct ext_inode *inode, struct cached_block *table)
{
	struct ext_disk_inode_large *disk = ext_inode_in(inode->fs, inode->number, table);
	uint32_t now = ext_now_seconds(inode->fs);

	disk->first.i_links_count = 0;
	disk->first.i_dtime = now != 0 ? now : 1;
	ext_inode_changed(inode->fs, inode->number, table);
}

/* The bit first: when that fails the inode on the disk is as it was. -EUCLEAN, or what reading the
 * bitmap returns. */
static int give_back(struct ext_inode *inode, uint32_t group, uint32_t index)
{
	struct ext_bitmap bitmap;
	int error = ext_bitmap_get(inode->fs, group, EXT_BITMAP_INODES, &bitmap);

	if (error)
		return error;
	count_inode(&bitmap.descriptor, -1, ext_is_directory(inode));
	return bcache_done(bitmap.buffer, ext_bitmap_change(&bitmap, index, 1, false));
}

/* -EUCLEAN of its bitmap is not told to the caller that removes a file. The contents were freed
 * before.
 */
int ext_inode_free(struct ext_inode *inode)
{
	struct ext_fs *fs = inode->fs;
	struct cached_block *table;
	uint32_t index, group = ext_group_of_inode(fs, inode->number, &index);
	int error = ext_inode_pin(fs, inode->number, &table);

	if (error)
		return error;
	error = give_back(inode, group, index);
	if (!error) {
		fs->super.s_free_inodes_count++;
		fs->super_changed = true;
	} else if (!fs->failed && ext_bitmap_is_bad(fs, group, EXT_BITMAP_INODES)) {
		error = 0; /* it stays in use until e2fsck */
	}
	if (!error)
		bury(inode, table);
	return bcache_done(table, error);
}
