/*
 * Making files shorter, making holes, and freeing files; and the opposite, blocks without contents.
 *
 * A large file has more blocks than one transaction can free. So the work is cut up, and at each
 * cut what is on the disk is valid:
 *
 *	1. the inode is in the list of orphans, and has its new size	from here on it is decided
 *	2. some blocks are unmapped and freed		again and again, perhaps in new transactions
 *	3. the inode leaves the list; without links, it is freed
 *
 * After a power cut the next mount goes on with step 2. A hole needs no list: each piece of it is
 * a valid state of the file.
 *
 * The rest of the last block is zeroed when a file becomes shorter, because it would show when the
 * file grows again.
 */
#include "fs/ext/allocation.h"
#include "fs/ext/mapping.h"
#include "kernel/lib/errno.h"

#define ALL_BLOCKS UINT32_MAX /* beyond the last one that a map can have */

/* Frees blocks, each step with the inode that says so. */
static int free_range(struct ext_inode *inode, uint64_t first, uint64_t end)
{
	int error = 0;

	while (first < end && !error) {
		error = ext_inode_write_after(inode, ext_map_free(inode, &first, end));
		if (!error && first < end)
			error = ext_extend(inode->fs, EXT_CREDITS);
	}
	return error;
}

/* Frees all blocks from the one on in which a size ends, unless it has a part of that. */
static int free_beyond(struct ext_inode *inode, uint64_t size)
{
	const struct ext_fs *fs = inode->fs;
	uint64_t first = (size + fs->summary.block_size - 1) >> fs->block_shift;
	uint64_t end = inode->flags & EXT_FLAG_EXTENTS ? ALL_BLOCKS : ext_blocks_in_reach(inode);

	return free_range(inode, first, end);
}

int ext_orphan_cut(struct ext_inode *inode)
{
	int error = ext_begin(inode->fs, EXT_CREDITS);

	if (error)
		return error;
	error = free_beyond(inode, inode->size);
	if (!error)
		error = ext_orphan_remove(inode);
	return ext_end(inode->fs, error);
}

/* EXERCISE S4, its third part: shrink makes a file shorter, in the order of the opening above.

   - what is beyond the size in the last block is zeros (ext_zero_tail), because it shows when the
     file grows again.
   - the inode is in the list of orphans (ext_orphan_add, ext_orphan_remove) while blocks are freed
     (free_beyond). A file without links is in that list anyway, and stays there.
   - its size and its times (ext_touch) are written (ext_inode_write) before the first block is
   freed.

   Pitfall: any of these may fail; then the next ones are not tried, and the inode stays listed. */
/* SOLUTION S4 { */
static int shrink(struct ext_inode *inode, uint64_t size)
{
	bool listed = inode->links == 0;
	int error = ext_zero_tail(inode, size);

	if (!error && !listed)
		error = ext_orphan_add(inode);
	if (error)
		return error;
	inode->size = size;
	ext_touch(inode);
	error = ext_inode_write(inode);
	if (!error)
		error = free_beyond(inode, size);
	if (!error && !listed)
		error = ext_orphan_remove(inode);
	return error;
}
/* } SOLUTION S4 */

static int extend_file(struct ext_inode *inode, uint64_t size)
{
	int error = ext_zero_tail(inode, inode->size);

	if (error)
		return error;
	inode->size = size;
	ext_touch(inode);
	return ext_inode_write(inode);
}

int ext_truncate(struct ext_inode *inode, uint64_t size)
{

	if (!ext_is_regular(inode))
		return -EINVAL;
	if (size > ext_size_limit(inode))
		return -EFBIG;
	int error = ext_inode_begin(inode);

	if (error)
		return error;
	error = size < inode->size ? shrink(inode, size) : extend_file(inode, size);
	inode->fs->cut_left |= error != 0;
	return ext_inode_end(inode, error);
}

int ext_punch(struct ext_inode *inode, uint64_t logical, uint64_t count)
{
	uint64_t limit = ext_blocks_in_reach(inode);
	uint64_t end = count > limit || logical > limit - count ? limit : logical + count;

	if (!ext_is_regular(inode))
		return -EINVAL;
	int error = ext_inode_begin(inode);

	if (error)
		return error;
	ext_touch(inode);
	return ext_inode_end(inode, free_range(inode, logical, end));
}

/* ---- blocks without contents ---- */

/* One run of blocks: unwritten in an extent, zeros where pointers lead. *logical moves on. */
static int allocate_some(struct ext_inode *inode, uint64_t *logical, uint64_t end)
{
	bool extents = inode->flags & EXT_FLAG_EXTENTS;
	struct ext_run run = { .logical = *logical, .unwritten = extents };
	struct ext_mapping mapping;
	int error = ext_map_all(inode, *logical, &mapping);

	if (!error && mapping.physical != 0) {
		*logical += mapping.length < end - *logical ? mapping.length : end - *logical;
		return 0;
	}
	if (!error)
		error = ext_run_allocate(inode, &mapping, end - *logical, &run);
	if (error)
		return error;
	if (!extents)
		error = ext_zero_blocks(inode->fs, run.physical, run.length);
	if (!error)
		error = ext_map_set(inode, &run);
	if (error)
		ext_blocks_free(inode, run.physical, run.length, false);
	else
		*logical += run.length;
	return error;
}

/* One change of ext_allocate. */
static int allocate_piece(struct ext_inode *inode, uint64_t *logical, uint64_t end, bool keep_size)
{
	struct ext_fs *fs = inode->fs;
	int error = ext_inode_begin(inode);

	if (error)
		return error;
	error = allocate_some(inode, logical, end);
	if (!error && !keep_size && *logical << fs->block_shift > inode->size)
		inode->size = *logical << fs->block_shift;
	ext_touch(inode);
	return ext_inode_end(inode, ext_inode_write_after(inode, error));
}

/* Blocks beyond the end must be unwritten ones, which pointers cannot say. */
int ext_allocate(struct ext_inode *inode, uint64_t logical, uint64_t count, bool keep_size)
{
	struct ext_fs *fs = inode->fs;
	uint64_t limit = ext_size_limit(inode) >> fs->block_shift;
	uint64_t end = logical + count;
	int error = 0;

	if (!ext_is_regular(inode))
		return -EINVAL;
	if (count > limit || logical > limit - count)
		return -EFBIG;
	if (!(inode->flags & EXT_FLAG_EXTENTS) && keep_size &&
	    end > (inode->size + fs->summary.block_size - 1) >> fs->block_shift)
		return -EOPNOTSUPP;
	if (!keep_size && end << fs->block_shift > inode->size)
		error = ext_zero_gap(inode);
	while (logical < end && !error)
		error = allocate_piece(inode, &logical, end, keep_size);
	return error;
}

/* Within the size only: beyond it no block has contents. */
static int fill_extent(struct ext_inode *inode, uint64_t logical)
{
	uint64_t next = UINT64_MAX, blocks = inode->size >> inode->fs->block_shift;
	struct ext_run run;
	unsigned depth = 0;
	int error = ext_extent_before(inode, logical, &run, &next, &depth);

	if (error)
		return error;
	if (!run.unwritten || run.logical + run.length > blocks)
		return -ENOSPC;
	error = ext_zero_blocks(inode->fs, run.physical, run.length);
	run.unwritten = false;
	return error ? error : ext_map_set(inode, &run);
}

int ext_fill_extent(struct ext_inode *inode, uint64_t logical)
{
	int error = inode->fs->options.data == EXT_DATA_JOURNAL ? -ENOSPC : ext_inode_begin(inode);

	if (error)
		return error;
	error = fill_extent(inode, logical);
	return ext_inode_end(inode, ext_inode_write_after(inode, error));
}

/* ---- the end of an inode ---- */

/* All of it is freed; the list of orphans is the last to forget it. */
static int release(struct ext_inode *inode)
{
	int error = 0;

	if (ext_has_map(inode))
		error = free_beyond(inode, 0);
	if (!error)
		error = ext_attributes_release(inode);
	if (!error)
		error = ext_orphan_remove(inode);
	if (error)
		return error;
	inode->size = 0;
	error = ext_inode_write(inode);
	return error ? error : ext_inode_free(inode);
}

int ext_release(struct ext_inode *inode)
{
	if (inode->links > 0)
		return -EINVAL;
	int error = ext_begin(inode->fs, EXT_CREDITS);

	if (error)
		return error;
	error = release(inode);
	if (error)
		ext_ask_for_check(inode->fs); /* it may be no orphan any more, and in use */
	return ext_end(inode->fs, error);
}
