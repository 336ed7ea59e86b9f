/* Where the blocks of a file are, and how that changes. */
#pragma once

#include "fs/ext/inodes.h"

/* Neighbouring blocks of a file that are neighbours on the disk. */
struct ext_run {
	uint64_t logical;
	uint64_t physical; /* 0: a hole */
	uint32_t length;
	bool unwritten;
};

/* How many blocks of a file the map has numbers for, holes included. */
uint64_t ext_blocks_in_reach(const struct ext_inode *inode);

/* Whether an inode has blocks at all: devices, pipes and short symbolic links have none. */
bool ext_has_map(const struct ext_inode *inode);

/* Gets a pointer block or extent block of an inode, from the cache. -EUCLEAN for a block outside
 * the file system. */
int ext_mapping_block(const struct ext_inode *inode, uint64_t block, struct cached_block **out);

/* ext_map for the two formats. When they begin, *out is a hole of depth 0 and one block; the length
 * may go beyond the end of the file. */
int ext_map_pointers(const struct ext_inode *inode, uint64_t logical, struct ext_mapping *out);
int ext_map_extents(const struct ext_inode *inode, uint64_t logical, struct ext_mapping *out);

/*
 * Maps a run to where its physical says; 0 makes a hole. Until then it is wholly a hole, or wholly
 * inside one extent. The run's blocks are neither allocated nor freed, those of the map itself are.
 * When it fails, the map says what it said; its blocks may be other ones, so the caller writes the
 * inode in any case.
 */
int ext_map_set(struct ext_inode *inode, const struct ext_run *run);
int ext_set_extent(struct ext_inode *inode, const struct ext_run *run);
int ext_set_pointers(struct ext_inode *inode, const struct ext_run *run);

/* How many blocks from `logical` on one ext_map_set can set. */
uint32_t ext_map_reach(const struct ext_inode *inode, uint64_t logical);
uint32_t ext_pointers_reach(const struct ext_inode *inode, uint64_t logical);

/* Where the block would best be: after the one before it. */
int ext_map_goal(const struct ext_inode *inode, uint64_t logical, uint64_t *goal);

/* Frees the first run of blocks from *first on, before `end`, as much of it as one change reaches
 * and is in one group. *first moves on: at `end` all is done. The map can have all these blocks. */
int ext_map_free(struct ext_inode *inode, uint64_t *first, uint64_t end);

/* The last extent that begins at `logical` or before it; length 0: there is none. *end, which the
 * caller sets, becomes where the next one begins; *depth grows by the blocks read. */
int ext_extent_before(const struct ext_inode *inode, uint64_t logical, struct ext_run *out,
		      uint64_t *end, unsigned *depth);

/* Decodes an extent, checked: it ends before `end`, where the next one begins. */
int ext_extent_decode(const struct ext_inode *inode, const struct ext_extent *extent, uint64_t end,
		      struct ext_run *out);

/* The last entry of a node that begins at `logical` or before it; NULL when all begin after it.
 * *end becomes the beginning of the next entry, if there is one. */
const union ext_extent_entry *ext_extent_find(const struct ext_extent_node *node, uint64_t logical,
					      uint64_t *end);

/* The root, checked; and the child of an entry, checked, in *buffer. */
int ext_extent_root(const struct ext_inode *inode);
int ext_extent_child(const struct ext_inode *inode, struct ext_extent_idx entry, unsigned depth,
		     uint64_t end, struct cached_block **buffer);

/* How many levels of pointer blocks lead to a block (4: none can), and its place in their tree. */
unsigned ext_pointer_tree(unsigned bits, uint64_t *position);

/* Allocates the block `logical` of a directory or a symbolic link, which has none, and gives it as
 * zeros, already part of the transaction. The caller has begun, sets the size, and calls
 * ext_inode_write, also after an error. */
int ext_block_add(struct ext_inode *inode, uint64_t logical, struct cached_block **out);

/* Where a block is that cannot be a hole, which is -EUCLEAN: of a directory, a symbolic link, or
 * the journal; and the same block, read. */
int ext_block_place(const struct ext_inode *inode, uint64_t logical, uint64_t *physical);
int ext_block_get(const struct ext_inode *inode, uint64_t logical, struct cached_block **out);

/* ---- contents (fs/ext/write.c) ---- */

/* Blocks for a run that begins at run->logical and is a hole, or unwritten already, as `mapping`
 * says: at most `count`. */
int ext_run_allocate(struct ext_inode *inode, const struct ext_mapping *mapping, uint64_t count,
		     struct ext_run *run);

/* Writes zeros from a size to the end of its block, if the block has contents. */
int ext_zero_tail(struct ext_inode *inode, uint64_t size);

/* The file is about to grow beyond its last block: zeros after its end, as a change of its own. */
int ext_zero_gap(struct ext_inode *inode);

/* Writes zeros to whole blocks. */
int ext_zero_blocks(struct ext_fs *fs, uint64_t physical, uint32_t count);
