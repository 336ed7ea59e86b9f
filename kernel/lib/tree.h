/*
 * Balanced binary trees, sorted by a number: the nodes are members of the user's structures.
 *
 * They are treaps (Aragon and Seidel, FOCS 1989): the keys are sorted from left to right, and
 * random-looking priorities, made from the keys, from top to bottom. So the depth is that of a tree
 * whose nodes came in random order, about 2 log n, in whatever order they really came; and cutting
 * a tree in two, or joining two, are the only operations there are.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct tree_node {
	struct tree_node *left, *right;
	uint32_t key; /* the user's; not changed while the node is in a tree */
};

/* A tree is a pointer to its root; NULL is an empty one. */

/* Adds a node, whose key is set and is in no other node of the tree. */
void tree_insert(struct tree_node **root, struct tree_node *node);

/* Takes a node of this tree out. */
void tree_remove(struct tree_node **root, struct tree_node *node);

/* The node with the largest key up to `key`, or with the smallest from `key` on; or NULL. */
struct tree_node *tree_at_most(struct tree_node *root, uint32_t key);
struct tree_node *tree_at_least(struct tree_node *root, uint32_t key);
