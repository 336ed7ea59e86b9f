/* Which disk block holds a block of a file, by block pointers: the way of ext2 and ext3. */
#include "fs/ext/mapping.h"

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

/* EXERCISE S3 (from a block of a file to a block of the disk), its first half: the drawing above.

   - ext_pointer_tree: how many levels of pointer blocks lead to a block of the file, 0 to
   HEIGHT_MAX; more, if no pointer leads there. *position becomes the block's position among those
   of its tree (height 0: its index in i_block). `bits` is the logarithm of N.
   - ext_map_pointers: an answer of fs/ext/ext.h, `struct ext_mapping`. It begins as a hole of one
     block; so is a block to which no pointer leads. Data is a run: the neighbours whose pointers
     follow in the same block, each larger by one; it may end after out->most blocks if that is not
     0. A hole goes on as long as zeros follow there; below a pointer 0 it goes on to the end of
     what that pointer would lead to. out->depth is how many blocks of pointers were read.
   - given: ext_mapping_block gets a block of pointers, checked and through the cache; bcache_put
     gives it back, and takes NULL; ext_range_valid(fs, first, count); ext_corrupt_inode prints, and
     returns -EUCLEAN.

   Pitfalls: what is in a block is valid until bcache_put. The length counts from the block that was
   asked for. Positions need 64 bits: blocks of 4 KiB have 2^30 of them in the third tree. All of a
   run must be inside the file system, not only its first block. A pointer of 32 bits may be larger
   than the disk at every level. */
/* SOLUTION S3 { */
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

/* Answers from the first of `count` neighbouring pointers to data, and counts how many of them
 * continue it: data by the next block each, a hole by another 0. All of a run is inside the file
 * system, or it is -EUCLEAN. */
static int map_run(const struct ext_inode *inode, const uint32_t *pointers, unsigned count,
		   struct ext_mapping *out)
{
	uint64_t first = pointers[0];
	unsigned length = 1;

	if (out->most > 0 && count > out->most)
		count = out->most;
	while (length < count && pointers[length] == (first == 0 ? 0 : first + length))
		length++;
	if (first != 0 && !ext_range_valid(inode->fs, first, length))
		return ext_corrupt_inode(inode, "%u blocks from %ju on are outside the file system",
					 length, first);
	out->physical = first;
	out->length = length;
	return 0;
}

/* The walk down: `pointers` is the next one to follow, with `count` to the end of its block. Block
 * 5000 with N = 1024: 5000 - 12 - 1024 = 3964 in the tree of two levels, digits 3 and 892: slot 3
 * of the first block, slot 892 of the second. */
int ext_map_pointers(const struct ext_inode *inode, uint64_t logical, struct ext_mapping *out)
{
	unsigned bits = inode->fs->block_shift - 2, slots = 1u << bits;
	unsigned height = ext_pointer_tree(bits, &logical);
	const uint32_t *pointers = inode->map + (height == 0 ? logical : DIRECT + height - 1);
	unsigned count = DIRECT - (unsigned)logical;
	struct cached_block *next, *buffer = NULL; /* has the pointers, unless the inode does */
	int error = 0;

	if (height > HEIGHT_MAX)
		return 0;
	for (; height > 0 && *pointers != 0; height--) {
		unsigned slot = (unsigned)(logical >> ((height - 1) * bits)) & (slots - 1);

		error = ext_mapping_block(inode, *pointers, &next);
		bcache_put(buffer);
		if (error)
			return error;
		buffer = next;
		pointers = (const uint32_t *)buffer->data + slot;
		count = slots - slot;
		out->depth++;
	}
	if (height == 0)
		error = map_run(inode, pointers, count, out);
	else /* positions below one pointer are 0 to 2^(height * bits) - 1 */
		out->length = ((uint64_t)1 << (height * bits)) -
			      (logical & (((uint64_t)1 << (height * bits)) - 1));
	bcache_put(buffer);
	return error;
}
/* } SOLUTION S3 */
