/*
 * Binary trees (treaps), by cutting and joining. The recursion is as deep as the tree, about 2 log
 * n.
 *
 *	insert 5	    4:90			    4:90	key:priority
 *			  2:31	 9:77			  2:31	 5:80	the new node is above 9
 *			       7:60				    9:77
 *							       7:60
 *
 * Insertion goes down while priorities are higher than the new node's; the subtree that it meets
 * then is cut at the key, and the two parts become the new node's children. Removal joins the two
 * children of a node in its place.
 */
#include "kernel/lib/tree.h"

/* The same number for the same key, so that a tree's form depends on its keys alone.
 * (Multiplicative hashing: Knuth, volume 3, 6.4.) */
static uint32_t random_priority(const struct tree_node *node)
{
	uint32_t mixed = node->key * 0x9e3779b1u;

	return (mixed ^ mixed >> 15) * 0x85ebca6bu;
}

/* Cuts a tree into keys below `key`, and the others. */
static void cut_tree(struct tree_node *root, uint32_t key, struct tree_node **below,
		     struct tree_node **others)
{
	if (!root) {
		*below = *others = NULL;
	} else if (root->key < key) {
		*below = root;
		cut_tree(root->right, key, &root->right, others);
	} else {
		*others = root;
		cut_tree(root->left, key, below, &root->left);
	}
}

/* Joins two trees; all keys of the first are below those of the second. */
static struct tree_node *join_trees(struct tree_node *first, struct tree_node *second)
{
	if (!first || !second)
		return first ? first : second;
	if (random_priority(first) > random_priority(second)) {
		first->right = join_trees(first->right, second);
		return first;
	}
	second->left = join_trees(first, second->left);
	return second;
}

/* Where a node with this key is, seen from *at; or below which child it must be. */
static struct tree_node **child(struct tree_node **at, uint32_t key)
{
	return key < (*at)->key ? &(*at)->left : &(*at)->right;
}

void tree_insert(struct tree_node **root, struct tree_node *node)
{
	while (*root && random_priority(*root) > random_priority(node))
		root = child(root, node->key);
	cut_tree(*root, node->key, &node->left, &node->right);
	*root = node;
}

void tree_remove(struct tree_node **root, struct tree_node *node)
{
	while (*root != node)
		root = child(root, node->key);
	*root = join_trees(node->left, node->right);
}

struct tree_node *tree_at_most(struct tree_node *root, uint32_t key)
{
	struct tree_node *best = NULL;

	while (root) {
		if (root->key <= key)
			best = root;
		root = root->key <= key ? root->right : root->left;
	}
	return best;
}

struct tree_node *tree_at_least(struct tree_node *root, uint32_t key)
{
	struct tree_node *best = NULL;

	while (root) {
		if (root->key >= key)
			best = root;
		root = root->key >= key ? root->left : root->right;
	}
	return best;
}
