/*
 * Hash trees grow: where a name belongs is full, so something is split.
 *
 * A block of names is sorted by hash, in memory, and its upper half moves to a new block at the end
 * of the directory. The node above gets one entry more:
 *
 *	block 0  root	-: 1	| 50000000: 4	| a0000000: 2		block 4 is full
 *	block 0  root	-: 1	| 50000000: 4	| 7a31c4e8: 5	| a0000000: 2
 *
 * If names with one hash are on both sides of the cut, the new entry is odd: 7a31c4e9.
 *
 * A full root moves what it has into a new node and keeps one entry, for that. A full node is
 * halved as blocks of names are, without sorting. When the root and the node are full, so is the
 * directory.
 *
 * Everything that may fail (memory, the journal, a full disk) comes before the first change of a
 * block. So each of these steps is whole or did not happen, and after each the tree is right.
 * Within a transaction; may wait for the drive.
 */
#include "fs/ext/directories.h"
#include "kernel/lib/errno.h"
#include "mm/page_alloc.h"

/* A name of a block that is split. */
struct sorted {
	uint32_t hash;
	uint16_t at, bytes; /* in the block's copy, and as much as it needs */
};

/* What a split works on: two pages. */
struct workspace {
	uint8_t copy[PAGE_SIZE];
	struct sorted names[PAGE_SIZE / sizeof(struct sorted)];
};

#define WORKSPACE_ORDER 1

_Static_assert(sizeof(struct workspace) == PAGE_SIZE << WORKSPACE_ORDER, "two pages");
_Static_assert(PAGE_SIZE / sizeof(struct sorted) > PAGE_SIZE / EXT_DIR_ENTRY_MIN, "all names fit");

/* ---- nodes ---- */

/* In the copy that walks use, and in the block: its first entry has the count in place of a hash.
 */
static void set_count(struct ext_tree_node *node, unsigned count)
{
	node->count = count;
	node->entries->count = (uint16_t)count;
}

/* After the entry that was taken, so that entries ascend. There is room. */
static void insert_entry(struct ext_tree_node *node, uint32_t begins, uint32_t logical)
{
	union ext_dx_entry *place = node->entries + node->at + 1;

	memmove(place + 1, place, (node->count - node->at - 1) * sizeof(*place));
	place->hash = begins;
	place->block = logical;
	set_count(node, node->count + 1);
}

/* Adds an empty node to the directory: for those who do not know of trees, a block with one unused
 * entry. -ENOSPC and what growing returns; then there is nothing to be put. */
static int new_tree_node(struct ext_inode *directory, struct ext_tree_node *node)
{
	uint32_t size = directory->fs->summary.block_size;
	int error = ext_directory_grow(directory, &node->logical, &node->buffer);

	if (error)
		return error;
	memset(node->buffer->data, 0, size);
	((struct ext_dir_entry_2 *)node->buffer->data)->rec_len = (uint16_t)size;
	node->entries = (union ext_dx_entry *)(node->buffer->data + EXT_DX_NODE_AT);
	node->limit = ext_tree_node_limit(directory->fs, EXT_DX_NODE_AT);
	node->entries->limit = (uint16_t)node->limit;
	node->at = 0;
	return 0;
}

/* Moves the entries from `first` on to an empty node, which thereby begins where the first of them
 * did: of that one only the block is kept. */
static void move_tree_entries(struct ext_tree_node *from, unsigned first, struct ext_tree_node *to)
{
	unsigned count = from->count - first;

	to->entries->block = from->entries[first].block;
	memcpy(to->entries + 1, from->entries + first + 1, (count - 1) * sizeof(*to->entries));
	set_count(to, count);
	set_count(from, first);
}

/* After all changes of a node, and before the transaction ends: its checksum covers the entries in
 * use.
 */
static void seal_node(const struct ext_inode *directory, const struct ext_tree_node *node)
{
	ext_directory_sum(directory, node->logical, node->buffer);
}

/* The root's entries go one level down. The new node has room for three more. */
static int deepen(struct ext_inode *directory, struct ext_tree *tree)
{
	struct ext_tree_node *root = &tree->nodes[0], *node = &tree->nodes[1];
	int error = new_tree_node(directory, node);

	if (error)
		return error;
	move_tree_entries(root, 0, node);
	node->at = root->at;
	root->at = 0;
	root->entries->block = node->logical;
	set_count(root, 1);
	struct ext_dx_root_info *info =
	    (struct ext_dx_root_info *)(root->buffer->data + EXT_DX_ROOT_AT);

	info->indirect_levels = 1;
	tree->levels = tree->held = 2;
	seal_node(directory, root);
	seal_node(directory, node);
	return 0;
}

/* The way goes on through the half that has the entry that was taken. */
static int split_node(struct ext_inode *directory, struct ext_tree *tree)
{
	struct ext_tree_node *root = &tree->nodes[0], *node = &tree->nodes[1], upper;
	unsigned half = node->count / 2;
	int error = new_tree_node(directory, &upper);

	if (error)
		return error;
	insert_entry(root, node->entries[half].hash, upper.logical);
	move_tree_entries(node, half, &upper);
	seal_node(directory, root);
	seal_node(directory, node);
	seal_node(directory, &upper);
	if (node->at >= half) {
		upper.at = node->at - half;
		root->at++;
		bcache_put(node->buffer);
		*node = upper;
	} else {
		bcache_put(upper.buffer);
	}
	return 0;
}

/* The nodes on the way become part of the transaction. After an error some are, unchanged. */
static int change_nodes(const struct ext_inode *directory, const struct ext_tree *tree)
{
	int error = 0;

	for (unsigned i = 0; i < tree->held && !error; i++)
		error = ext_change(directory->fs, tree->nodes[i].buffer);
	return error;
}

/* The lowest node on the way gets room for one entry more: by a level more, or by half of a node.
 * -ENOSPC when both nodes are full. */
static int make_node_room(struct ext_inode *directory, struct ext_tree *tree)
{
	const struct ext_tree_node *lowest = &tree->nodes[tree->held - 1];

	if (lowest->count < lowest->limit)
		return 0;
	if (tree->levels == 1)
		return deepen(directory, tree);
	return tree->nodes[0].count < tree->nodes[0].limit ? split_node(directory, tree) : -ENOSPC;
}

/* ---- blocks of names ---- */

/* By hash: Shell's sort, which needs no memory and few steps for the 340 names of a block. */
static void sort_by_hash(struct sorted *names, unsigned count)
{
	for (unsigned gap = count / 2; gap > 0; gap /= 2)
		for (unsigned i = gap; i < count; i++) {
			struct sorted moving = names[i];
			unsigned place = i;

			for (; place >= gap && names[place - gap].hash > moving.hash; place -= gap)
				names[place] = names[place - gap];
			names[place] = moving;
		}
}

/* Copies a block of names, and sorts them. The entries were walked before: they are valid. */
static unsigned sort_names(const struct ext_tree *tree, const struct cached_block *leaf,
			   struct workspace *work)
{
	const struct ext_fs *fs = tree->directory->fs;
	uint32_t end = ext_directory_end(tree->directory, tree->leaf, leaf->data);
	const struct ext_dir_entry_2 *entry;
	unsigned count = 0;

	memcpy(work->copy, leaf->data, fs->summary.block_size);
	for (uint32_t at = 0; at < end; at += entry->rec_len) {
		entry = (const struct ext_dir_entry_2 *)(work->copy + at);
		if (entry->inode == 0)
			continue;
		struct ext_name name = (struct ext_name){ entry->name, entry->name_len };

		work->names[count++] = (struct sorted){
			.hash = ext_name_hash(fs, tree->version, &name),
			.at = (uint16_t)at,
			.bytes = (uint16_t)ext_entry_bytes(name.length),
		};
	}
	sort_by_hash(work->names, count);
	return count;
}

/* How many names stay: about half of the bytes, and at least one on each side. By bytes, not by
 * names: both halves need room. */
static unsigned middle_of(const struct sorted *names, unsigned count)
{
	uint32_t total = 0, taken = names[0].bytes;
	unsigned middle = 1;

	for (unsigned i = 0; i < count; i++)
		total += names[i].bytes;
	while (middle < count - 1 && 2 * taken + names[middle].bytes < total)
		taken += names[middle++].bytes;
	return middle;
}

/* Fills a block with the names from `first` up to `end`, closely, and from the copy: the block
 * itself is one of the two that are filled. */
static void fill_leaf(const struct ext_inode *directory, uint32_t logical,
		      struct cached_block *leaf, const struct workspace *work, unsigned first,
		      unsigned end)
{
	struct ext_packer packer = { .data = leaf->data };

	for (unsigned i = first; i < end; i++)
		ext_pack(&packer, (const struct ext_dir_entry_2 *)(work->copy + work->names[i].at));
	ext_pack_end(directory->fs, &packer);
	ext_directory_sum(directory, logical, leaf);
}

/* The block of names at the end of the way, in *leaf, is halved. The way leads to the half for
 * `hash` then. */
static int split_names(struct ext_inode *directory, struct ext_tree *tree,
		       struct cached_block *leaf, struct workspace *work, uint32_t hash)
{
	struct ext_tree_node *node = &tree->nodes[tree->held - 1];
	unsigned count = sort_names(tree, leaf, work);
	struct cached_block *upper;
	uint32_t logical;

	if (count < 2)
		return ext_corrupt_inode(directory, "directory block %u: full with %u names",
					 tree->leaf, count);
	int error = ext_directory_grow(directory, &logical, &upper);

	if (error)
		return error;
	unsigned middle = middle_of(work->names, count);
	uint32_t begins = work->names[middle].hash;

	fill_leaf(directory, tree->leaf, leaf, work, 0, middle);
	fill_leaf(directory, logical, upper, work, middle, count);
	bcache_put(upper);
	insert_entry(node, begins | (work->names[middle - 1].hash == begins), logical);
	seal_node(directory, node);
	if (hash >= begins) {
		node->at++;
		tree->leaf = logical;
	}
	return 0;
}

/* The block of names becomes part of the transaction first; the nodes above are already. */
static int split_leaf(struct ext_inode *directory, struct ext_tree *tree, uint32_t hash)
{
	struct workspace *work = page_alloc(WORKSPACE_ORDER);
	struct cached_block *leaf;

	if (!work)
		return -ENOMEM;
	int error = ext_tree_leaf(tree, &leaf);

	if (!error)
		error = bcache_done(leaf, ext_change(directory->fs, leaf)
					      ?: split_names(directory, tree, leaf, work, hash));
	page_free(work, WORKSPACE_ORDER);
	return error;
}

/* -ENOSPC is the tree's answer of no room, and then that of a directory, or a disk, that is full.
 * Room above comes first, so that the new block has an entry to be found by. */
int ext_tree_room(struct ext_inode *directory, const struct ext_name *name, struct ext_slot *slot)
{
	uint32_t bytes = ext_entry_bytes(name->length), hash;
	struct ext_tree tree;
	int error = ext_tree_open_at(directory, &tree, name, &hash)
			?: ext_tree_look(&tree, NULL, bytes, slot);

	if (error == -ENOSPC)
		error = change_nodes(directory, &tree) ?: make_node_room(directory, &tree)
			    ?: split_leaf(directory, &tree, hash)
			    ?: ext_tree_look(&tree, NULL, bytes, slot);
	ext_tree_close(&tree);
	return error;
}

/* ---- the first tree of a directory ---- */

/* "." and ".." must be the first two entries: the root's begin right after them. */
static bool dots_first(const struct ext_inode *directory, const uint8_t *data)
{
	const struct ext_dir_entry_2 *dot = (const struct ext_dir_entry_2 *)data;
	const struct ext_dir_entry_2 *up = (const struct ext_dir_entry_2 *)(data + 12);

	return dot->inode == directory->number && dot->rec_len == 12 && dot->name_len == 1 &&
	       dot->name[0] == '.' && up->inode != 0 && up->name_len == 2 &&
	       memcmp(up->name, "..", 2) == 0;
}

/* What the superblock asks for; e2fsprogs' default for a number that is not one. */
uint8_t ext_tree_version(const struct ext_fs *fs)
{
	uint8_t version = fs->super.s_def_hash_version;

	return version <= EXT_HASH_TEA ? version : EXT_HASH_HALF_MD4;
}

/* Block 0 becomes a root with one entry. ".." gets the rest of the block, so who walks the block by
 * its entries sees a directory without other names. */
static void write_root(const struct ext_inode *directory, struct cached_block *root,
		       uint32_t logical)
{
	const struct ext_fs *fs = directory->fs;
	struct ext_dx_root_info info = { .hash_version = ext_tree_version(fs),
					 .info_length = sizeof(info) };
	uint32_t at = EXT_DX_ROOT_AT + sizeof(info);
	union ext_dx_entry *entries = (union ext_dx_entry *)(root->data + at);
	struct ext_dir_entry_2 *up = (struct ext_dir_entry_2 *)(root->data + 12);

	up->rec_len = (uint16_t)(fs->summary.block_size - 12);
	memset(root->data + EXT_DX_ROOT_AT, 0, fs->summary.block_size - EXT_DX_ROOT_AT);
	memcpy(root->data + EXT_DX_ROOT_AT, &info, sizeof(info));
	entries->limit = (uint16_t)ext_tree_node_limit(fs, at);
	entries->count = 1;
	entries->block = logical;
	ext_directory_sum(directory, 0, root);
}

/* Everything after ".." goes to a block of its own. The flag is set before the checksums are made,
 * because it says which kind of block this is. */
static int split_root(struct ext_inode *directory, struct cached_block *root)
{
	struct ext_packer packer = { 0 };
	struct cached_block *leaf;
	uint32_t logical, end = ext_directory_end(directory, 0, root->data);

	if (!dots_first(directory, root->data))
		return ext_corrupt_inode(directory, "directory does not begin with . and ..");
	int error = ext_directory_grow(directory, &logical, &leaf);

	if (error)
		return error;
	packer.data = leaf->data;
	const struct ext_dir_entry_2 *entry = (const struct ext_dir_entry_2 *)(root->data + 12);

	for (uint32_t at = 12 + entry->rec_len; at < end; at += entry->rec_len) {
		entry = (const struct ext_dir_entry_2 *)(root->data + at);
		ext_pack(&packer, entry);
	}
	ext_pack_end(directory->fs, &packer);
	directory->flags |= EXT_FLAG_INDEX;
	ext_directory_sum(directory, logical, leaf);
	write_root(directory, root, logical);
	bcache_put(leaf);
	return ext_inode_write(directory);
}

/* A directory of one block that is full gets its tree: one change of two blocks and the inode. */
int ext_tree_make(struct ext_inode *directory)
{
	struct cached_block *root;
	int error = ext_directory_block(directory, 0, &root);

	if (error)
		return error;
	error = ext_change(directory->fs, root);
	return bcache_done(root, error ? error : split_root(directory, root));
}
