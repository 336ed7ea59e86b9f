/*
 * A lock of a cluster, as OCFS2 and others have it. The nodes share a disk, and one of them, the
 * master, decides who may read and who may write.
 *
 *	NL	nothing
 *	PR	protected read: any number of nodes at a time
 *	EX	exclusive: one node, and nobody else has PR
 *
 * A node keeps its level until another one wants more. Then the master tells it (a bast), and the
 * node lowers its level as soon as it does not use it. A master answers each request with one ast.
 */
#pragma once

#include <stdbool.h>

#define LOCK_NODES 16u

enum lock_level { LOCK_NL, LOCK_PR, LOCK_EX };

/* Someone who waits. */
struct lock_request {
	unsigned node;
	enum lock_level level;
	bool is_conversion; /* it has a level, and keeps it while it waits */
};

/* What the master knows; zeroed, nobody has anything. */
struct lock {
	enum lock_level granted[LOCK_NODES];
	struct lock_request queue[LOCK_NODES]; /* in the order in which they are granted */
	unsigned waiting;		       /* how many */
	/* The highest level for which a node got a bast since its own level changed; NL: none. */
	enum lock_level warned[LOCK_NODES];
};

/* ---- what the master does (master.c). Nodes are below LOCK_NODES; -EINVAL goes first ---- */

/* A node wants a level above its own. -EINVAL for another one, -EBUSY if it waits already. */
int lock_request(struct lock *lock, unsigned node, enum lock_level level);

/* A node takes back its request, and keeps what it has. Too late, when it has been granted: the ast
 * is under way, and says so. */
void lock_cancel(struct lock *lock, unsigned node);

/* A node has a lower level from now on. -EINVAL for one that is not lower, -EBUSY while it waits
 * for a conversion. */
int lock_lower(struct lock *lock, unsigned node, enum lock_level level);

/* ---- what it sends (the simulation has these) ---- */

/* The answer: the node has this level; is_granted: as it wanted, else its request is cancelled. */
void lock_send_ast(struct lock *lock, unsigned node, enum lock_level level, bool is_granted);

/* The node is in the way of another one, which wants this level. */
void lock_send_bast(struct lock *lock, unsigned node, enum lock_level level);
