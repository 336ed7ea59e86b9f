/*
 * Hash trees: the way from a name's hash to the block of the directory that has the name.
 *
 * The nodes are blocks of the directory itself. Each entry of a node says from which hash on a
 * block is responsible; the first one of a node has no hash, because it begins where the node does:
 *
 *	block 0  root	  -: 1		| 50000000: 4	| a0000000: 2
 *	block 1		  names with hashes from 00000000 to 4ffffffe, in any order
 *	block 4		  names from 50000000 to a0000000
 *	block 2		  names from a0000000 on
 *
 * Hashes are even. An odd one in a node, such as a0000001 for block 2, says that the block before
 * has names with hash a0000000, too: a search for one of these continues in block 2 if it is not in
 * block 4.
 *
 * A root in 4 KiB has room for 507 entries. Once it is full, it points to nodes of the same form,
 * with 510 entries each: 258,570 blocks. A third level takes the feature large_dir.
 *
 * The tree is as deep as the root says, at most two levels, so a walk ends, whatever the numbers
 * are. -EUCLEAN for a node that contradicts itself: then a reader may search all blocks.
 * May wait for the drive. docs.kernel.org, "ext4 Data Structures and Algorithms", 4.4.2 Hash Tree
 * Directories.
 */
#include "fs/ext/directories.h"
#include "kernel/lib/errno.h"

/* The entries begin at byte `at` of the block. */
unsigned ext_tree_node_limit(const struct ext_fs *fs, uint32_t at)
{
	return (fs->summary.block_size - at) / sizeof(union ext_dx_entry) - ext_has_checksums(fs);
}

/* A block of the directory that a node may point to: there, and not on the way here. */
static bool block_possible(const struct ext_tree *tree, uint32_t logical)
{
	for (unsigned i = 0; i < tree->held; i++)
		if (tree->nodes[i].logical == logical)
			return false;
	return logical < ext_directory_blocks(tree->directory);
}

/* Adds a node to the way, checked. */
static int enter_node(struct ext_tree *tree, uint32_t logical)
{
	struct ext_tree_node *node = &tree->nodes[tree->held];
	const struct ext_inode *directory = tree->directory;

	if (!block_possible(tree, logical))
		return ext_corrupt_inode(directory, "hash tree leads to block %u", logical);
	int error = ext_directory_block(directory, logical, &node->buffer);

	if (error)
		return error;
	uint32_t at = ext_directory_index(directory, logical, node->buffer->data);

	node->entries = (union ext_dx_entry *)(node->buffer->data + at);
	node->logical = logical;
	node->limit = node->entries->limit;
	node->count = node->entries->count;
	node->at = 0;
	tree->held++;
	if (at == 0 || node->limit != ext_tree_node_limit(directory->fs, at) || node->count == 0 ||
	    node->count > node->limit)
		return ext_corrupt_inode(directory, "hash tree node in block %u: %u of %u entries",
					 logical, node->count, node->limit);
	return 0;
}

int ext_tree_open(const struct ext_inode *directory, struct ext_tree *tree)
{
	*tree = (struct ext_tree){ .directory = directory };
	int error = enter_node(tree, 0);

	if (error)
		return error;
	const struct ext_dx_root_info *info =
	    (const struct ext_dx_root_info *)(tree->nodes[0].buffer->data + EXT_DX_ROOT_AT);

	tree->version = info->hash_version;
	tree->levels = info->indirect_levels + 1u;
	if (info->reserved_zero != 0 || info->info_length != sizeof(*info) ||
	    tree->version > EXT_HASH_UNSIGNED + EXT_HASH_TEA || tree->levels > EXT_TREE_LEVELS)
		return ext_corrupt_inode(directory, "hash tree: version %u, %u levels",
					 tree->version, tree->levels);
	return 0;
}

void ext_tree_close(struct ext_tree *tree)
{
	while (tree->held > 0)
		bcache_put(tree->nodes[--tree->held].buffer);
}

/* The last entry that does not begin after the hash; by binary search. */
static unsigned entry_for(const struct ext_tree_node *node, uint32_t hash)
{
	unsigned low = 1, high = node->count;

	while (low < high) { /* those before low do not, those from high on do */
		unsigned middle = (low + high) / 2;

		if (node->entries[middle].hash <= hash)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

/* From the node that was entered last down to a block of names. */
static int descend(struct ext_tree *tree, uint32_t hash)
{
	struct ext_tree_node *node = &tree->nodes[tree->held - 1];

	while (tree->held < tree->levels) {
		int error = enter_node(tree, node->entries[node->at].block);

		if (error)
			return error;
		node++;
		node->at = entry_for(node, hash);
	}
	tree->leaf = node->entries[node->at].block;
	if (!block_possible(tree, tree->leaf))
		return ext_corrupt_inode(tree->directory, "hash tree leads to block %u",
					 tree->leaf);
	return 0;
}

int ext_tree_seek(struct ext_tree *tree, uint32_t hash)
{
	tree->nodes[0].at = entry_for(&tree->nodes[0], hash);
	return descend(tree, hash);
}

int ext_tree_open_at(const struct ext_inode *directory, struct ext_tree *tree,
		     const struct ext_name *name, uint32_t *hash)
{
	int error = ext_tree_open(directory, tree);

	if (error)
		return error;
	*hash = ext_name_hash(directory->fs, tree->version, name);
	return ext_tree_seek(tree, *hash);
}

/* Up to the lowest node with another entry, which begins the next block; from there down through
 * the first entries. Only upwards: a walk along the tree ends, even one whose hashes do not ascend.
 */
int ext_tree_next(struct ext_tree *tree, uint32_t *begins)
{
	struct ext_tree_node *node = &tree->nodes[tree->held - 1];

	while (node->at + 1 == node->count) {
		if (tree->held == 1)
			return 0;
		bcache_put(tree->nodes[--tree->held].buffer);
		node--;
	}
	*begins = node->entries[++node->at].hash;
	int error = descend(tree, 0);

	return error ? error : 1;
}

/* With checksums a node cannot be taken for a block of names; without them an empty one can. */
int ext_tree_leaf(const struct ext_tree *tree, struct cached_block **out)
{
	const struct ext_inode *directory = tree->directory;
	int error = ext_directory_block(directory, tree->leaf, out);

	if (error || !ext_has_checksums(directory->fs) ||
	    ext_directory_index(directory, tree->leaf, (*out)->data) == 0)
		return error;
	bcache_put(*out);
	return ext_corrupt_inode(directory, "hash tree leads to node %u as to names", tree->leaf);
}

int ext_tree_look(const struct ext_tree *tree, const struct ext_name *name, uint32_t bytes,
		  struct ext_slot *slot)
{
	slot->logical = tree->leaf;
	int error = ext_tree_leaf(tree, &slot->buffer);

	return error ? error : ext_entry_look(tree->directory, slot, name, bytes);
}

/* Most names are in the first block, if they are anywhere. */
int ext_tree_find(const struct ext_inode *directory, const struct ext_name *name,
		  struct ext_slot *slot)
{
	struct ext_tree tree;
	uint32_t hash, begins;
	int result = ext_tree_open_at(directory, &tree, name, &hash);

	while (!result) {
		result = ext_tree_look(&tree, name, 0, slot);
		if (result != -ENOENT)
			break;
		result = ext_tree_next(&tree, &begins);
		result = result < 0 ? result : result == 1 && begins == (hash | 1) ? 0 : -ENOENT;
	}
	ext_tree_close(&tree);
	return result;
}
