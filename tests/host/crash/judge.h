/*
 * Judges a tree that was there after a power cut: it must be the tree after one of the operations
 * that were asked for, and none before the last one that promised safety.
 *
 *	operations	1 2 3 4* 5 6 7			4: an fsync, that had ended
 *	power cut		       ^ in 7		allowed: the trees after 4, 5, 6, 7
 *
 * Names, types, links, sizes and targets are those of one tree. Each sector of a file is what it
 * was after that operation, or after a later one: contents are written before the names and sizes
 * that go with them. Then nothing that was promised is missing, nothing that was deleted comes
 * back, a rename has happened or not, and no file shows what another one had.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/host/crash/session.h"

/* How contents are kept: ext.h. */
extern enum ext_data judge_data;

/* A kernel writes names, sizes and contents in an order of its own: then each file's size and each
 * sector may be those after any of the allowed operations. */
extern bool judge_weakly;

/* Judges `tree` after a cut before request `position`. Returns the operation whose tree it is, or
 * -1 with the reason in `problem`. */
int judge(const struct session *session, uint64_t position, const struct model *tree,
	  char *problem);

/* All of both, contents too. */
bool trees_equal(const struct model *tree, const struct model *wanted, char *problem);
