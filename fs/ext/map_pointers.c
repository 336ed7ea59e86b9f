/* Which disk block holds a block of a file, by block pointers: the way of ext2 and ext3. */
#include "fs/ext/internal.h"

/*
 * With N = 2^bits pointers in a block:
 *
 *   i_block          leads to                                            logical blocks from
 *   [0] to [11]      a data block each                                   0
 *   [12]             a pointer block, N data blocks                      12
 *   [13]             N pointer blocks under one, N^2 data blocks         12 + N
 *   [14]             three levels of pointer blocks, N^3 data blocks     12 + N + N^2
 *
 * A pointer 0, at any level, is a hole: all that it would lead to reads as zeros. Inside a tree the
 * position of a block, written with `bits` bits a digit, spells the slot to take at each level.
 */
#define DIRECT	   12u
#define HEIGHT_MAX 3u

/* More than HEIGHT_MAX: no pointer leads there. The position becomes relative to the tree. */
unsigned ext_pointer_tree(unsigned bits, uint64_t *position)
{
	uint64_t covered = DIRECT;
	unsigned height = 0;

	while (height <= HEIGHT_MAX && *position >= covered) {
		*position -= covered;
		height++;
		covered = (uint64_t)1 << (height * bits);
	}
	return height;
}

/* Answers from the first of `count` neighbouring pointers, and counts how many of them continue it:
 * data by the next block each, a hole by another 0. */
static int map_run(const struct ext_inode *inode, const uint32_t *pointers, unsigned count,
		   struct ext_mapping *out)
{
	uint64_t first = pointers[0];
	unsigned step = first == 0 ? 0 : 1;
	unsigned length = 1;

	while (length < count && pointers[length] == first + length * step)
		length++;
	if (first != 0 && !ext_range_valid(inode->fs, first, length))
		return ext_corrupt_inode(inode, "%u blocks from %ju on are outside the file system",
					 length, first);
	out->physical = first;
	out->length = length;
	return 0;
}

/* One level down: replaces the number of a pointer block by the pointer at `slot` in it. */
static int step_down(const struct ext_inode *inode, unsigned slot, uint32_t *pointer,
		     struct ext_mapping *out)
{
	struct cached_block *buffer;
	int error = ext_mapping_block(inode, *pointer, &buffer);

	if (error)
		return error;
	out->depth++;
	*pointer = ((const uint32_t *)buffer->data)[slot];
	bcache_put(buffer);
	return 0;
}

/* The lowest level: what the pointers from `slot` on say. */
static int map_last(const struct ext_inode *inode, unsigned slot, uint32_t pointer,
		    struct ext_mapping *out)
{
	unsigned in_block = inode->fs->summary.block_size / sizeof(uint32_t);
	struct cached_block *buffer;
	int error = ext_mapping_block(inode, pointer, &buffer);

	if (error)
		return error;
	out->depth++;
	error = map_run(inode, (const uint32_t *)buffer->data + slot, in_block - slot, out);
	bcache_put(buffer);
	return error;
}

/* Block 5000 with N = 1024: 5000 - 12 - 1024 = 3964 in the tree of two levels, digits 3 and 892:
 * slot 3 of the first block, slot 892 of the second. */
int ext_map_pointers(const struct ext_inode *inode, uint64_t logical, struct ext_mapping *out)
{
	unsigned bits = inode->fs->block_shift - 2;
	unsigned slot_mask = (1u << bits) - 1;
	unsigned height = ext_pointer_tree(bits, &logical);
	uint32_t pointer;
	uint64_t below; /* blocks of the file under one pointer */

	if (height == 0)
		return map_run(inode, inode->map + logical, DIRECT - (unsigned)logical, out);
	if (height > HEIGHT_MAX)
		return 0;
	pointer = inode->map[DIRECT + height - 1];
	for (; height > 1 && pointer != 0; height--) {
		unsigned slot = (unsigned)(logical >> ((height - 1) * bits)) & slot_mask;
		int error = step_down(inode, slot, &pointer, out);

		if (error)
			return error;
	}
	if (pointer != 0)
		return map_last(inode, (unsigned)logical & slot_mask, pointer, out);
	below = (uint64_t)1 << (height * bits);
	out->length = below - (logical & (below - 1));
	return 0;
}
