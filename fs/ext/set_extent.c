/*
 * Extents, changed: one function for all cases.
 *
 * To map a run is to replace a few neighbouring entries of a leaf by others. ext_set_extent writes
 * down what the run and its neighbours become, left to right; what continues the piece before it
 * is merged with that. w is written, u is unwritten, and blocks go to 7000 + n unless they say so:
 *
 *	append 8 from 100	[0-99 w]			[0-107 w]		merged
 *	write 40-49		[0-99 u]			[0-39 u][40-49 w][50-99 u]
 *	write 50-99		[0-39 u][40-49 w][50-99 u]	[0-39 u][40-99 w]
 *	punch 10-19		[0-107 w]			[0-9 w][20-107 w]
 *	200 at 9000		[0-107 w][300-309 w]		[0-107 w][200 w][300-309 w]
 *
 * Three entries can be touched, so five pieces come out at most. If the leaf has no room for them,
 * the tree gets some, a step at a time, and it begins again with the walk from the root:
 *
 *	split	a full node's upper half moves to a new one, to its right in the parent
 *	grow_tree	the root is full: its entries move to a new node, the root's only child
 *
 * After each step the tree is valid and says the same as before, so a full disk or an error ends
 * the work anywhere. A node without entries is removed, and so on upwards.
 *
 * An entry's key is the first block of the child. When that changes, so does the key, up to the
 * first ancestor in which it is not the first entry.
 */
#include "fs/ext/allocation.h"
#include "fs/ext/mapping.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"

#define PIECES	  5u
#define ENTRY_MIN 4u /* the least room that a node has: the root's */

struct level {
	struct cached_block *buffer; /* NULL: the root */
	struct ext_extent_node *node;
	int at; /* the entry to follow, or the last that begins at the block or before; -1: none */
};

struct path {
	struct level levels[EXT_EXTENT_DEPTH_MAX + 1];
	unsigned depth;
};

/* A part of a leaf, as it will be. */
struct pieces {
	struct ext_run runs[PIECES];
	unsigned count;
	unsigned first, replaced; /* entries of the leaf */
};

static void path_put(struct path *path)
{
	for (unsigned i = 1; i <= path->depth; i++)
		bcache_put(path->levels[i].buffer);
}

/* The entry to follow to a block; in an inner node, the first one for what is before all. `*bound`
 * is where the node after this one begins, and then where the one after its child does. */
static void choose(struct level *level, uint64_t logical, uint64_t *bound)
{
	const struct ext_extent_node *node = level->node;
	uint64_t next = *bound;
	const union ext_extent_entry *entry = ext_extent_find(node, logical, &next);

	level->at = entry ? (int)(entry - node->entries) : -1;
	if (node->header.eh_depth == 0)
		return;
	if (!entry) {
		level->at = 0;
		next = node->header.eh_entries > 1 ? node->entries[1].block : *bound;
	}
	*bound = next;
}

/* Takes a node into the transaction, and finds where to go from there. */
static int enter(struct ext_inode *inode, struct level *level, uint64_t logical, uint64_t *bound)
{
	if (level->node->header.eh_max < ENTRY_MIN)
		return ext_corrupt_inode(inode, "extent node with room for %u",
					 level->node->header.eh_max);
	choose(level, logical, bound);
	return level->buffer ? ext_change(inode->fs, level->buffer) : 0;
}

/* Walks to the leaf for a block. `*bound` becomes where the next leaf begins. */
static int walk(struct ext_inode *inode, uint64_t logical, struct path *path, uint64_t *bound)
{
	struct level *level = path->levels;
	int error = ext_extent_root(inode);

	*path = (struct path){ .depth = 0 };
	*bound = UINT64_MAX;
	level->node = (struct ext_extent_node *)inode->map;
	if (!error)
		error = enter(inode, level, logical, bound);
	while (!error && level->node->header.eh_depth > 0) {
		error =
		    ext_extent_child(inode, level->node->entries[level->at].index,
				     level->node->header.eh_depth - 1u, *bound, &level[1].buffer);
		if (error)
			break;
		level++;
		path->depth++;
		level->node = (struct ext_extent_node *)level->buffer->data;
		error = enter(inode, level, logical, bound);
	}
	if (error)
		path_put(path);
	return error;
}

/* The checksum of a node in a block is after the last entry that it has room for. */
static void seal(const struct ext_inode *inode, const struct level *level)
{
	if (!level->buffer || !ext_has_checksums(inode->fs))
		return;
	struct ext_extent_tail *tail =
	    (struct ext_extent_tail *)&level->node->entries[level->node->header.eh_max];
	uint32_t length = (uint32_t)((uint8_t *)tail - level->buffer->data);

	tail->et_checksum = crc32c(ext_inode_seed(inode), level->buffer->data, length);
}

/* Puts keys right after a node's first entry may have changed; and seals what changed. */
static void fix_keys(const struct ext_inode *inode, struct path *path, unsigned depth)
{
	seal(inode, &path->levels[depth]);
	for (; depth > 0; depth--) {
		struct level *parent = &path->levels[depth - 1];

		parent->node->entries[parent->at].block =
		    path->levels[depth].node->entries[0].block;
		seal(inode, parent);
		if (parent->at > 0)
			break;
	}
}

static void remove_entries(struct ext_extent_node *node, unsigned at, unsigned count)
{
	unsigned after = node->header.eh_entries - at - count;

	memmove(&node->entries[at], &node->entries[at + count], after * sizeof(*node->entries));
	node->header.eh_entries -= count;
}

/* Room for `count` entries before entry `at`; the node has it. */
static void open_gap(struct ext_extent_node *node, unsigned at, unsigned count)
{
	unsigned after = node->header.eh_entries - at;

	memmove(&node->entries[at + count], &node->entries[at], after * sizeof(*node->entries));
	node->header.eh_entries += count;
}

/* ---- room ---- */

static struct ext_extent_node *new_node(const struct ext_inode *inode, struct cached_block *buffer,
					unsigned depth)
{
	uint32_t size = inode->fs->summary.block_size - sizeof(struct ext_extent_header);
	struct ext_extent_node *node = (struct ext_extent_node *)buffer->data;

	node->header = (struct ext_extent_header){
		.eh_magic = EXT_EXTENT_MAGIC,
		.eh_max = (uint16_t)(size / sizeof(struct ext_extent)),
		.eh_depth = (uint16_t)depth,
	};
	return node;
}

/* Moves the entries from `from` on to a new node. */
static void move_entries(struct ext_extent_node *node, unsigned from, struct ext_extent_node *to)
{
	unsigned count = node->header.eh_entries - from;

	memcpy(to->entries, &node->entries[from], count * sizeof(*node->entries));
	to->header.eh_entries = (uint16_t)count;
	node->header.eh_entries = (uint16_t)from;
}

static union ext_extent_entry index_to(const struct cached_block *buffer,
				       const struct ext_extent_node *node)
{
	return (union ext_extent_entry){ .index = {
					     .ei_block = node->entries[0].block,
					     .ei_leaf_lo = (uint32_t)buffer->block,
					     .ei_leaf_hi = (uint16_t)(buffer->block >> 32),
					 } };
}

/* A new node between the root and all that it has. */
static int grow_tree(struct ext_inode *inode)
{
	struct ext_extent_node *node, *root = (struct ext_extent_node *)inode->map;
	struct level level;

	if (root->header.eh_depth >= EXT_EXTENT_DEPTH_MAX)
		return -EFBIG;
	int error = ext_metadata_allocate(inode, ext_inode_goal(inode), &level.buffer);

	if (error)
		return error;
	level.node = node = new_node(inode, level.buffer, root->header.eh_depth);
	move_entries(root, 0, node);
	seal(inode, &level);
	root->entries[0] = index_to(level.buffer, node);
	root->header.eh_entries = 1;
	root->header.eh_depth++;
	bcache_put(level.buffer);
	return 0;
}

/* EXERCISE S4, its second part: extents. First split, a node whose parent has room.

   - a new node (ext_metadata_allocate, near ext_inode_goal) gets the upper half of the entries, or
     only the last one, if that is the one to follow: so files that grow leave full nodes.
   - the parent gets an entry for it, to the right of the one it follows, parent->at.
   - given: new_node, move_entries, open_gap, index_to; seal writes a node's checksum.

   Pitfalls: the disk may be full: until the new node is there, nothing may change. Three nodes have
   changed, and each has a checksum. bcache_put. */
/* SOLUTION S4 { */
static int split(struct ext_inode *inode, struct level *parent, struct level *level)
{
	struct ext_extent_node *node = level->node;
	unsigned count = node->header.eh_entries;
	unsigned from = level->at == (int)count - 1 ? count - 1 : count / 2;
	struct level right;
	int error = ext_metadata_allocate(inode, ext_inode_goal(inode), &right.buffer);

	if (error)
		return error;
	right.node = new_node(inode, right.buffer, node->header.eh_depth);
	move_entries(node, from, right.node);
	open_gap(parent->node, (unsigned)parent->at + 1, 1);
	parent->node->entries[parent->at + 1] = index_to(right.buffer, right.node);
	seal(inode, level);
	seal(inode, &right);
	seal(inode, parent);
	bcache_put(right.buffer);
	return 0;
}
/* } SOLUTION S4 */

/* One step towards room in the leaf: at the lowest full node whose parent is not. */
static int make_room(struct ext_inode *inode, struct path *path)
{
	for (unsigned depth = path->depth; depth > 0; depth--) {
		const struct ext_extent_header *parent = &path->levels[depth - 1].node->header;

		if (parent->eh_entries < parent->eh_max)
			return split(inode, &path->levels[depth - 1], &path->levels[depth]);
	}
	return grow_tree(inode);
}

/* ---- pieces ---- */

/* EXERCISE S4: pieces, see the table in the opening of this file.

   - continues: whether `next` goes on where `run` ends, as one extent could say: in the file and on
     the disk, of the same kind, and no longer than an extent can be: 32768 blocks, 32767 unwritten.
   - add_piece: the next piece to the right. Holes (physical 0) and empty runs add nothing;
     what continues the last piece extends it.
   - add_part: adds the part of an old piece from block `from` on, before `end`; it may be nothing.
     What begins later in the file begins as much later on the disk. */
/* SOLUTION S4 { */
static bool continues(const struct ext_run *run, const struct ext_run *next)
{
	uint32_t limit = EXT_EXTENT_WRITTEN_LIMIT - run->unwritten;

	return run->logical + run->length == next->logical &&
	       run->physical + run->length == next->physical && run->unwritten == next->unwritten &&
	       run->length + next->length <= limit;
}

static void add_piece(struct pieces *pieces, struct ext_run run)
{
	if (run.length == 0 || run.physical == 0)
		return;
	if (pieces->count > 0 && continues(&pieces->runs[pieces->count - 1], &run))
		pieces->runs[pieces->count - 1].length += run.length;
	else
		pieces->runs[pieces->count++] = run;
}

/* The part of an old piece from block `from` on, before `end`. It may be nothing. */
static void add_part(struct pieces *pieces, struct ext_run part, uint64_t from, uint64_t end)
{
	if (from < part.logical)
		from = part.logical;
	if (end > part.logical + part.length)
		end = part.logical + part.length;
	if (from >= end)
		return;
	part.physical += from - part.logical;
	part.length = (uint32_t)(end - from);
	part.logical = from;
	add_piece(pieces, part);
}
/* } SOLUTION S4 */

/* What the entries around the run become. `end` is where the next leaf begins. */
static int collect(const struct ext_inode *inode, const struct level *leaf, uint64_t end,
		   const struct ext_run *run, struct pieces *out)
{
	unsigned count = leaf->node->header.eh_entries;
	unsigned first = leaf->at > 0 ? (unsigned)leaf->at - 1 : 0;
	struct ext_run old[3];
	unsigned i = 0;

	*out = (struct pieces){ .first = first };
	for (; i < 3 && first + i < count && (int)(first + i) <= leaf->at + 1; i++) {
		bool last = first + i + 1 == count;
		int error = ext_extent_decode(inode, &leaf->node->entries[first + i].extent,
					      last ? end : leaf->node->entries[first + i + 1].block,
					      &old[i]);

		if (error)
			return error;
	}
	out->replaced = i;
	for (i = 0; i < out->replaced; i++)
		add_part(out, old[i], 0, run->logical);
	add_piece(out, *run);
	for (i = 0; i < out->replaced; i++)
		add_part(out, old[i], run->logical + run->length, UINT64_MAX);
	return 0;
}

static void write_pieces(struct ext_extent_node *node, const struct pieces *pieces)
{
	remove_entries(node, pieces->first, pieces->replaced);
	open_gap(node, pieces->first, pieces->count);
	for (unsigned i = 0; i < pieces->count; i++) {
		const struct ext_run *run = &pieces->runs[i];
		uint32_t unwritten = run->unwritten ? EXT_EXTENT_WRITTEN_LIMIT : 0;

		node->entries[pieces->first + i].extent = (struct ext_extent){
			.ee_block = (uint32_t)run->logical,
			.ee_len = (uint16_t)(run->length + unwritten),
			.ee_start_hi = (uint16_t)(run->physical >> 32),
			.ee_start_lo = (uint32_t)run->physical,
		};
	}
}

/* Removes nodes without entries, from the leaf upwards. */
static int prune(struct ext_inode *inode, struct path *path)
{
	struct ext_extent_node *root = path->levels[0].node;
	unsigned depth = path->depth;

	for (; depth > 0 && path->levels[depth].node->header.eh_entries == 0; depth--) {
		struct level *level = &path->levels[depth], *parent = level - 1;
		uint64_t block = level->buffer->block;

		bcache_put(level->buffer);
		level->buffer = NULL;
		int error = ext_blocks_free(inode, block, 1, true);

		if (error)
			return error;
		remove_entries(parent->node, (unsigned)parent->at, 1);
		parent->at = 0;
		seal(inode, parent);
	}
	if (root->header.eh_entries == 0)
		root->header.eh_depth = 0;
	else
		fix_keys(inode, path, depth);
	return 0;
}

int ext_set_extent(struct ext_inode *inode, const struct ext_run *run)
{
	struct pieces pieces;
	struct path path;
	uint64_t end;
	int error;

	for (;;) { /* each turn a node is split, or the tree grows, up to its depth's limit */
		struct level *leaf;

		error = walk(inode, run->logical, &path, &end);
		if (error)
			return error;
		leaf = &path.levels[path.depth];
		error = collect(inode, leaf, end, run, &pieces);
		if (error)
			break;
		if (leaf->node->header.eh_entries - pieces.replaced + pieces.count <=
		    leaf->node->header.eh_max) {
			write_pieces(leaf->node, &pieces);
			error = prune(inode, &path);
			break;
		}
		error = make_room(inode, &path);
		if (error)
			break;
		path_put(&path);
	}
	path_put(&path);
	return error;
}
