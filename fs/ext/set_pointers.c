/*
 * Block pointers, changed: the blocks of pointers on the way are made when they are missing, and
 * freed when they are empty.
 *
 * To set block 5000 of a file, in a file system with N = 1024 (map_pointers.c has the drawing):
 *
 *	word 13 of i_block	0	a block of zeros, 9000, and its number comes here
 *	block 9000, slot 3	0	a block of zeros, 9001
 *	block 9001, slot 892	0	the number of the data block
 *
 * Each line leaves a valid map that says the same as before, so a full disk or an error may end
 * the work after any of them. A run is inside one block of pointers, the last one of the way
 * (ext_pointers_reach says how long it can be).
 */
#include "fs/ext/allocation.h"
#include "fs/ext/mapping.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"

#define DIRECT	   12u
#define HEIGHT_MAX 3u

/* The way to a pointer: slot[0] is in the inode, slot[n] in buffer[n]. */
struct way {
	uint32_t *slot[HEIGHT_MAX + 1];
	struct cached_block *buffer[HEIGHT_MAX + 1];
	unsigned height; /* as far as it was gone */
};

uint32_t ext_pointers_reach(const struct ext_inode *inode, uint64_t logical)
{
	unsigned bits = inode->fs->block_shift - 2;
	unsigned height = ext_pointer_tree(bits, &logical);
	uint32_t slots = 1u << bits;

	if (height == 0)
		return DIRECT - (uint32_t)logical;
	return height > HEIGHT_MAX ? 0 : slots - ((uint32_t)logical & (slots - 1));
}

/* NULL is allowed: the inode itself has slot 0. */
static void way_put(struct way *way)
{
	for (unsigned i = 1; i <= way->height; i++)
		bcache_put(way->buffer[i]);
}

/* The block of pointers below slot[height] becomes part of the way and of the transaction. A new
 * one is made when there is none. */
static int step_down(struct ext_inode *inode, struct way *way, uint64_t goal)
{
	uint32_t *slot = way->slot[way->height];
	struct cached_block **buffer = &way->buffer[way->height + 1];

	if (*slot == 0) {
		int error = ext_metadata_allocate(inode, goal, buffer);

		if (!error)
			*slot = (uint32_t)(*buffer)->block;
		return error;
	}
	return ext_check_run(inode, *slot, 1) ?: ext_mapping_block(inode, *slot, buffer)
		   ?: ext_change_or_put(inode->fs, *buffer);
}

/* Goes to the pointer of a block. Without `make` it ends early where a tree is missing. */
static int go(struct ext_inode *inode, uint64_t logical, bool make, uint64_t goal, struct way *way)
{
	unsigned bits = inode->fs->block_shift - 2;
	unsigned height = ext_pointer_tree(bits, &logical);
	int error = 0;

	*way = (struct way){ .height = 0 };
	if (height > HEIGHT_MAX)
		return -EFBIG;
	way->slot[0] = &inode->map[height == 0 ? logical : DIRECT + height - 1];
	while (way->height < height && (make || *way->slot[way->height] != 0)) {
		uint64_t digit = logical >> ((height - way->height - 1) * bits);

		error = step_down(inode, way, goal);
		if (error)
			break;
		way->height++;
		way->slot[way->height] = (uint32_t *)way->buffer[way->height]->data +
					 ((uint32_t)digit & ((1u << bits) - 1));
	}
	if (error)
		way_put(way);
	return error;
}

static bool is_empty(const struct ext_inode *inode, const struct cached_block *buffer)
{
	const uint32_t *pointers = (const uint32_t *)buffer->data;
	uint32_t count = inode->fs->summary.block_size / sizeof(uint32_t), i = 0;

	while (i < count && pointers[i] == 0)
		i++;
	return i == count;
}

/* Frees the blocks of pointers that are empty now, from the last one of the way upwards. */
static int prune_pointers(struct ext_inode *inode, struct way *way)
{
	int error = 0;

	for (; way->height > 0 && is_empty(inode, way->buffer[way->height]); way->height--) {
		uint32_t *slot = way->slot[way->height - 1];

		bcache_put(way->buffer[way->height]);
		way->buffer[way->height] = NULL;
		error = ext_blocks_free(inode, *slot, 1, true);
		if (error)
			break;
		*slot = 0;
	}
	return error;
}

int ext_set_pointers(struct ext_inode *inode, const struct ext_run *run)
{
	uint64_t goal = run->physical != 0 ? run->physical : ext_inode_goal(inode);
	struct way way;

	if ((run->physical + run->length) >> 32 != 0)
		return -EFBIG;
	int error = go(inode, run->logical, run->physical != 0, goal, &way);

	if (error)
		return error;
	unsigned height = way.height;

	for (uint32_t i = 0; i < run->length; i++)
		way.slot[height][i] = run->physical == 0 ? 0 : (uint32_t)run->physical + i;
	if (run->physical == 0)
		error = prune_pointers(inode, &way);
	way_put(&way);
	return error;
}
