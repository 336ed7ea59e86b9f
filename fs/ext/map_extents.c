/* Which disk block holds a block of a file, by extents: ext4's way. */
#include "fs/ext/mapping.h"

/*
 * A tree, whose root is in i_block and has room for 4 entries:
 *
 *   i_block     depth 1 | from 0 on: block 50            | from 4000 on: block 51
 *   block 50    depth 0 | 100 blocks from 0 on at 7000   | 8 blocks from 300 on at 9000
 *   block 51    depth 0 | 32768 blocks from 4000 on at 20000
 *
 * Entries ascend. So in either kind of node the last entry that does not begin after the wanted
 * block is the one to follow, and the answer ends at the latest where the next entry begins. What
 * no extent covers is a hole: above, blocks 100 to 299 and 308 to 3999.
 *
 * A node has only entries for its own part of the file, which ends where its parent's next entry
 * begins: in block 50, an extent from 4100 on would never be found, but would be the end of a hole
 * that hides what block 51 says.
 */
#define ROOM(bytes)                                                                                \
	((unsigned)(((bytes) - sizeof(struct ext_extent_header)) / sizeof(struct ext_extent)))

/* A file has 2^32 - 1 blocks at most: as in Linux an extent does not reach the last number. */
static int check_last(const struct ext_inode *inode, const struct ext_extent *last)
{
	uint32_t length = last->ee_len;

	length -= length > EXT_EXTENT_WRITTEN_LIMIT ? EXT_EXTENT_WRITTEN_LIMIT : 0;
	if (length <= UINT32_MAX - last->ee_block)
		return 0;
	return ext_corrupt_inode(inode, "extent at %u: length %u, more than files have",
				 last->ee_block, length);
}

/* Refuses a header that no node has. `block` is 0 for the root, and `room` the entries that fit. */
static int check_header(const struct ext_inode *inode, uint64_t block,
			const struct ext_extent_node *node, unsigned room)
{
	struct ext_extent_header header = node->header;
	bool empty = header.eh_entries == 0 && header.eh_depth > 0;

	if (header.eh_magic != EXT_EXTENT_MAGIC || header.eh_max > room || empty ||
	    header.eh_entries > header.eh_max || header.eh_depth > EXT_EXTENT_DEPTH_MAX)
		return ext_corrupt_inode(
		    inode,
		    "extent node in block %ju: magic 0x%04x, %u of %u entries, "
		    "depth %u",
		    block, header.eh_magic, header.eh_entries, header.eh_max, header.eh_depth);
	return 0;
}

/* Refuses a node whose entries cannot be searched. */
static int check_order(const struct ext_inode *inode, uint64_t block,
		       const struct ext_extent_node *node)
{
	struct ext_extent_header header = node->header;

	for (unsigned i = 1; i < header.eh_entries; i++)
		if (node->entries[i].block <= node->entries[i - 1].block)
			return ext_corrupt_inode(
			    inode, "extent node in block %ju: entry %u is out of order", block, i);
	return header.eh_depth == 0 && header.eh_entries > 0
		   ? check_last(inode, &node->entries[header.eh_entries - 1].extent)
		   : 0;
}

/* By binary search, which relies on the order. */
const union ext_extent_entry *ext_extent_find(const struct ext_extent_node *node, uint64_t logical,
					      uint64_t *end)
{
	unsigned low = 0, high = node->header.eh_entries;

	while (low < high) { /* those before low do, those from high on do not */
		unsigned middle = (low + high) / 2;

		if (node->entries[middle].block <= logical)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < node->header.eh_entries)
		*end = node->entries[low].block;
	return low > 0 ? &node->entries[low - 1] : NULL;
}

/* A block of a tree is a node from its first byte on. */
static const struct ext_extent_node *node_in(const struct cached_block *buffer)
{
	return (const struct ext_extent_node *)buffer->data;
}

/* Gets the node in a block. Its entries are checked once in the life of the buffer; its header each
 * time, because on a damaged disk somebody else may have checked the block, as something else. */
static int get_node(const struct ext_inode *inode, uint64_t block, struct cached_block **out)
{
	struct cached_block *buffer;
	int error = ext_mapping_block(inode, block, &buffer);

	if (error)
		return error;
	error = check_header(inode, block, node_in(buffer), ROOM(inode->fs->summary.block_size));
	if (!error && !buffer->verified)
		error = check_order(inode, block, node_in(buffer));
	if (!error && !buffer->verified)
		error = ext_extent_verify(inode, buffer);
	if (error)
		return bcache_done(buffer, error);
	buffer->verified = true;
	*out = buffer;
	return 0;
}

int ext_extent_root(const struct ext_inode *inode)
{
	const struct ext_extent_node *root = (const struct ext_extent_node *)inode->map;
	int error = check_header(inode, 0, root, ROOM(sizeof(inode->map)));

	return error ? error : check_order(inode, 0, root);
}

/* EXERCISE S3, its second half: extents. Contracts: fs/ext/mapping.h; the drawing is above.

   - check_child: refuses (ext_corrupt_inode) a child that is not of the depth given, or has entries
     outside its part of the file: from `begin` on, and before `end`. Its entries ascend already.
   - ext_extent_decode: an extent as a run. ee_len above EXT_EXTENT_WRITTEN_LIMIT, 32768, means
     ee_len - 32768 blocks that are unwritten. Refuses a length of 0, an extent that goes beyond
     `end`, where the next one begins, and blocks outside the file system.
   - ext_extent_before: the walk from the root to the last extent that begins at `logical` or before
     it. *end is lowered at every level. *depth_read grows by the nodes read.
   - ext_map_extents: the answer. What is in no extent is a hole, up to *end; after the last extent
     it goes on to the last number that a block of a file can have, at least.
   - given: ext_extent_root, the root checked; ext_extent_find, the entry to follow in a
     node; ext_extent_child, which gets a child, its entries in order, and calls check_child.

   Pitfalls: the disk's contents may be anything. A node may lead to itself or to one above it, and
   the walk must end: the depth falls by one at each step. A leaf has up to 340 extents in 4 KiB,
   and an inner node that many children. Blocks of the disk have 48 bits: ee_start_hi, ei_leaf_hi. A
   node that was got goes back on every way out, and nothing in it is used after that. An extent of
   32768 blocks is written. */
/* SOLUTION S3 { */
/* Refuses a child that is not of the depth given (so that every walk ends), or has entries outside
 * of its part of the file: from `begin` on, and before `end`. The entries ascend. */
static int check_child(const struct ext_inode *inode, uint64_t block,
		       const struct ext_extent_node *child, unsigned depth, uint64_t begin,
		       uint64_t end)
{
	unsigned count = child->header.eh_entries;

	if (child->header.eh_depth != depth)
		return ext_corrupt_inode(inode, "extent node in block %ju: depth %u, not %u", block,
					 child->header.eh_depth, depth);
	if (count == 0)
		return 0;
	if (child->entries[0].block < begin || child->entries[count - 1].block >= end)
		return ext_corrupt_inode(
		    inode, "extent node in block %ju: blocks %u to %u, not in its part, %ju to %ju",
		    block, child->entries[0].block, child->entries[count - 1].block, begin,
		    end - 1);
	return 0;
}
/* } SOLUTION S3 */

int ext_extent_child(const struct ext_inode *inode, struct ext_extent_idx entry, unsigned depth,
		     uint64_t end, struct cached_block **buffer)
{
	uint64_t block = entry.ei_leaf_lo | (uint64_t)entry.ei_leaf_hi << 32;
	int error = get_node(inode, block, buffer);

	if (error)
		return error;
	error = check_child(inode, block, node_in(*buffer), depth, entry.ei_block, end);
	if (error) {
		bcache_put(*buffer);
		*buffer = NULL;
	}
	return error;
}

/* SOLUTION S3 { */
int ext_extent_decode(const struct ext_inode *inode, const struct ext_extent *extent, uint64_t end,
		      struct ext_run *out)
{
	bool unwritten = extent->ee_len > EXT_EXTENT_WRITTEN_LIMIT;
	uint32_t length = extent->ee_len - (unwritten ? EXT_EXTENT_WRITTEN_LIMIT : 0);
	uint64_t start = extent->ee_start_lo | (uint64_t)extent->ee_start_hi << 32;

	if (length == 0 || extent->ee_block + (uint64_t)length > end)
		return ext_corrupt_inode(inode,
					 "extent at %u: length %u, but the next begins at %ju",
					 extent->ee_block, length, end);
	if (!ext_range_valid(inode->fs, start, length))
		return ext_corrupt_inode(inode, "%u blocks from %ju on are outside the file system",
					 length, start);
	*out = (struct ext_run){ extent->ee_block, start, length, unwritten };
	return 0;
}

/* The walk down: at each level the entry to follow, and a closer bound of the answer. The depth
 * falls by one each time, so the walk ends. */
int ext_extent_before(const struct ext_inode *inode, uint64_t logical, struct ext_run *out,
		      uint64_t *end, unsigned *depth_read)
{
	const struct ext_extent_node *root = (const struct ext_extent_node *)inode->map;
	const union ext_extent_entry *entry;
	struct cached_block *child, *buffer = NULL; /* holds entry, unless the root does */
	int error = ext_extent_root(inode);

	*out = (struct ext_run){ .length = 0 };
	if (error)
		return error;
	entry = ext_extent_find(root, logical, end);
	for (unsigned depth = root->header.eh_depth; depth > 0 && entry; depth--) {
		error = ext_extent_child(inode, entry->index, depth - 1, *end, &child);
		bcache_put(buffer);
		if (error)
			return error;
		buffer = child;
		++*depth_read;
		entry = ext_extent_find(node_in(buffer), logical, end);
	}
	if (entry)
		error = ext_extent_decode(inode, &entry->extent, *end, out);
	bcache_put(buffer);
	return error;
}

int ext_map_extents(const struct ext_inode *inode, uint64_t logical, struct ext_mapping *out)
{
	uint64_t end = UINT64_MAX;
	struct ext_run run;
	int error = ext_extent_before(inode, logical, &run, &end, &out->depth);
	uint64_t offset = logical - run.logical;

	out->length = end - logical; /* unless there is an extent, all of it is a hole */
	if (error || offset >= run.length)
		return error; /* in the hole between it and the next */
	out->physical = run.physical + offset;
	out->length = run.length - offset;
	out->unwritten = run.unwritten;
	return 0;
}
/* } SOLUTION S3 */
