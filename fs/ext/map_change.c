/*
 * Changing where the blocks of a file are, in the format that the inode has: a run becomes mapped,
 * or a hole.
 *
 * What the formats differ in is how far one change reaches: a block of pointers, or the longest
 * extent.
 *
 * Blocks of directories and symbolic links are metadata: they are changed through the cache, and
 * are forgotten when they are freed. A file's contents go past the cache. The caller has begun.
 */
#include "fs/ext/allocation.h"
#include "fs/ext/mapping.h"
#include "kernel/lib/errno.h"

/* So that an unwritten run fits into one extent, too; and how many blocks of pointers lead to one.
 */
#define RUN_MAX	       (EXT_EXTENT_WRITTEN_LIMIT - 1u)
#define POINTER_LEVELS 3u

/* The last number of a block is not used: the end of a run must have one, too. 0: none is in reach.
 */
uint32_t ext_map_reach(const struct ext_inode *inode, uint64_t logical)
{
	if (!(inode->flags & EXT_FLAG_EXTENTS))
		return ext_pointers_reach(inode, logical);
	if (logical >= UINT32_MAX)
		return 0;
	return UINT32_MAX - logical < RUN_MAX ? (uint32_t)(UINT32_MAX - logical) : RUN_MAX;
}

/* How many blocks a map may need for one more block of the file, at worst: for reservations. */
uint32_t ext_map_worst(const struct ext_inode *inode)
{
	const struct ext_extent_node *root = (const struct ext_extent_node *)inode->map;

	return inode->flags & EXT_FLAG_EXTENTS ? root->header.eh_depth + 1u : POINTER_LEVELS;
}

/* One extent may become three. */
bool ext_map_has_room(const struct ext_inode *inode)
{
	const struct ext_extent_header *root =
	    &((const struct ext_extent_node *)inode->map)->header;

	return root->eh_depth == 0 && root->eh_entries + 2 <= root->eh_max;
}

int ext_map_set(struct ext_inode *inode, const struct ext_run *run)
{
	return inode->flags & EXT_FLAG_EXTENTS ? ext_set_extent(inode, run)
					       : ext_set_pointers(inode, run);
}

/* Without a block before it, or after a hole, the file's group. */
int ext_map_goal(const struct ext_inode *inode, uint64_t logical, uint64_t *goal)
{
	struct ext_mapping mapping = { .physical = 0 };
	int error = 0;

	if (logical > 0)
		error = ext_map_all(inode, logical - 1, &mapping);
	*goal = mapping.physical != 0 ? mapping.physical + 1 : ext_inode_goal(inode);
	return error;
}

/* Contents may have been in the journal, too. */
static bool is_metadata(const struct ext_inode *inode)
{
	return !ext_is_regular(inode) || inode->fs->options.data == EXT_DATA_JOURNAL;
}

/* Frees a mapped run, all in one group. If its blocks cannot be freed it is mapped as before. */
static int free_run(struct ext_inode *inode, const struct ext_run *run)
{
	struct ext_run hole = { run->logical, 0, run->length, false };
	int error = ext_map_set(inode, &hole);

	if (error)
		return error;
	error = ext_blocks_free(inode, run->physical, run->length, is_metadata(inode));
	if (error)
		ext_map_set(inode, run);
	return error;
}

/* Holes are passed over by whole answers. The run ends where the map's reach, the mapping or the
 * group does: so one change frees it, with one bitmap. */
int ext_map_free(struct ext_inode *inode, uint64_t *first, uint64_t end)
{
	struct ext_mapping mapping;
	int error = ext_map_all(inode, *first, &mapping);

	while (!error && mapping.physical == 0 && mapping.length < end - *first) {
		*first += mapping.length;
		error = ext_map_all(inode, *first, &mapping);
	}
	if (error)
		return error;
	struct ext_run run = { *first, mapping.physical, ext_map_reach(inode, *first),
			       mapping.unwritten };

	if (mapping.physical != 0) {
		mapping.length = ext_shorter(mapping.length, end - *first);
		run.length = ext_shorter(run.length, mapping.length);
		run.length =
		    ext_shorter(run.length, ext_blocks_to_group_end(inode->fs, run.physical));
		error = free_run(inode, &run);
	}
	if (!error)
		*first = mapping.physical != 0 ? *first + run.length : end;
	return error;
}

/* Where the map cannot be set, the block is free again: nothing else has seen it. */
int ext_block_add(struct ext_inode *inode, uint64_t logical, struct cached_block **out)
{
	struct ext_run run = { logical, 0, 1, false };
	struct ext_mapping there;
	uint64_t goal;
	int error = ext_map_all(inode, logical, &there);

	if (!error && there.physical != 0)
		error = ext_corrupt_inode(inode, "block %ju is new, and has a place", logical);
	if (!error && ext_map_reach(inode, logical) == 0)
		error = -EFBIG;
	if (!error)
		error =
		    ext_map_goal(inode, logical, &goal) ?: ext_metadata_allocate(inode, goal, out);
	if (error)
		return error;
	run.physical = (*out)->block;
	error = ext_map_set(inode, &run);
	if (error) {
		bcache_put(*out);
		ext_blocks_free(inode, run.physical, 1, true);
	}
	return error;
}

/* -EUCLEAN of a map that leaves something out, as it may only for a file's contents. */
int ext_block_place(const struct ext_inode *inode, uint64_t logical, uint64_t *physical)
{
	struct ext_mapping mapping;
	int error = ext_map(inode, logical, &mapping);

	*physical = mapping.physical;
	if (!error && (mapping.physical == 0 || mapping.unwritten))
		error = ext_corrupt_inode(inode, "a hole at block %ju, where there must be none",
					  logical);
	return error;
}

int ext_block_get(const struct ext_inode *inode, uint64_t logical, struct cached_block **out)
{
	uint64_t physical;
	int error = ext_block_place(inode, logical, &physical);

	return error ? error : ext_block_read(inode->fs, physical, BLOCK_OTHER, out);
}
