/*
 * The orphan file (orphan_file, from e2fsprogs 1.47 on): orphans in an array instead of a list.
 *
 *	a block		12 | 0 | 30 | ... | magic, checksum		0: nobody
 *
 * Linux gives each processor a block of the file, so that unlink need not wait for the one list in
 * the superblock. We have one processor: what Linux left in the file goes to the list (orphan.c),
 * an entry in one change, when the file system is mounted, and from then on the file is empty.
 * orphan_present says that it may have entries. The checksum is over the block's number and the
 * entries. (docs.kernel.org, ext4: "Orphan file")
 */
#include "fs/ext/mapping.h"
#include "kernel/lib/errno.h"

#define MAX_BLOCKS 512 /* e2fsprogs makes no larger one */

/* All of a block but its tail. */
static unsigned entries_of(const struct ext_fs *fs)
{
	return (fs->summary.block_size - sizeof(struct ext_orphan_tail)) / sizeof(uint32_t);
}

static struct ext_orphan_tail *tail_of(const struct cached_block *buffer)
{
	return (struct ext_orphan_tail *)(buffer->data + buffer->size) - 1;
}

static uint32_t orphan_checksum(const struct ext_inode *file, const struct cached_block *buffer)
{
	uint32_t sum = crc32c(ext_inode_seed(file), &buffer->block, sizeof(buffer->block));

	return crc32c(sum, buffer->data, entries_of(file->fs) * sizeof(uint32_t));
}

/* Either the list has the orphan, or the file still has it: both are in one change. */
static int move_entry(const struct ext_inode *file, struct cached_block *buffer, uint32_t *entry)
{
	struct ext_fs *fs = file->fs;
	struct ext_inode orphan = { .fs = fs, .number = *entry };
	int error = ext_orphan_check(fs, *entry) ?: ext_begin(fs, 3);

	if (error)
		return error;
	error = ext_change(fs, buffer) ?: ext_orphan_add(&orphan);
	if (!error) {
		*entry = 0;
		tail_of(buffer)->ob_checksum = orphan_checksum(file, buffer);
	}
	return ext_end(fs, error);
}

/* -EUCLEAN for a block without the file's magic number; entries that were moved before that stay
 * moved.
 */
static int empty_block(const struct ext_inode *file, struct cached_block *buffer)
{
	uint32_t *entries = (uint32_t *)buffer->data;
	int error = 0;

	if (tail_of(buffer)->ob_magic != EXT_ORPHAN_MAGIC)
		return ext_corrupt_inode(file, "orphan file: magic number 0x%x",
					 tail_of(buffer)->ob_magic);
	if (ext_has_checksums(file->fs) &&
	    tail_of(buffer)->ob_checksum != orphan_checksum(file, buffer))
		return ext_corrupt_inode(file, "orphan file: wrong checksum");
	for (unsigned i = 0; i < entries_of(file->fs) && !error; i++)
		if (entries[i] != 0)
			error = move_entry(file, buffer, &entries[i]);
	return error;
}

static int empty_file(const struct ext_inode *file)
{
	uint64_t blocks = file->size >> file->fs->block_shift;
	int error = 0;

	if (blocks > MAX_BLOCKS)
		return ext_corrupt_inode(file, "orphan file of %ju blocks", blocks);
	for (uint64_t block = 0; block < blocks && !error; block++) {
		struct cached_block *buffer;

		error = ext_block_get(file, block, &buffer);
		if (error)
			return error;
		error = empty_block(file, buffer);
		bcache_put(buffer);
	}
	return error;
}

/* The flag goes last, in a change of its own: cut off before it, the next mount begins again. */
int ext_orphan_file_empty(struct ext_fs *fs)
{
	struct ext_inode file;

	if (!(fs->super.s_feature_compat & EXT_COMPAT_ORPHAN_FILE) ||
	    !ext_has_ro_compat(fs, EXT_RO_COMPAT_ORPHAN_PRESENT))
		return 0;
	int error = ext_inode_read(fs, fs->super.s_orphan_file_inum, &file);

	if (error == -EINVAL)
		return ext_corrupt(fs, "superblock", "orphan file in inode %u",
				   fs->super.s_orphan_file_inum);
	if (!error)
		error = empty_file(&file) ?: ext_begin(fs, 1);
	if (error)
		return error;
	fs->super.s_feature_ro_compat &= ~EXT_RO_COMPAT_ORPHAN_PRESENT;
	fs->super_changed = true;
	return ext_end(fs, 0);
}
