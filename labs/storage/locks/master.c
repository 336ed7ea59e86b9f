/*
 * The master of a lock: it decides which node gets the lock, and in which order.
 *
 *	granted: 0 has PR, 1 has PR	queue: 1 wants EX (it converts), 2 wants EX, 3 wants PR
 *
 *	bast to 0 (EX)		only node 0 is in the way of the first one
 *	0 lowers to NL		ast to 1: EX. Now 1 is in the way of 2: bast to 1 (EX)
 *	1 lowers to NL		ast to 2: EX; bast to 2 (PR), because 3 waits
 *
 * Conversions come before new requests, because what they have is in the way of all others. Among
 * equals the first one comes first, and nobody overtakes: else a stream of readers would keep a
 * writer waiting for ever. So only the first one of the queue can be granted, and only for it
 * somebody is told to lower.
 *
 * No bast may be lost: who is in the way, and does not know, never lowers. None is sent twice for
 * nothing: a node that knows needs no other message, until its level has changed or more is wanted.
 */
#include "labs/storage/locks/locks.h"

#include "kernel/lib/errno.h"

/* EXERCISE S7 (the master of a lock): the three functions of labs/storage/locks/locks.h at the end,
 * and what they need. Each request that is accepted gets one ast, when it is granted or taken back.
 * A cancel may come too late, and a node that has a level while it converts keeps it when it
 * cancels. Basts go out whenever it becomes clear that a node is in the way, not only when a
 * request arrives. A node gets the ast of a level before the bast that asks for that level back. */
/* SOLUTION S7 { */
/* May two nodes have these at a time? */
static bool are_compatible(enum lock_level one, enum lock_level other)
{
	return one == LOCK_NL || other == LOCK_NL || (one == LOCK_PR && other == LOCK_PR);
}

static bool is_in_the_way(const struct lock *lock, unsigned node,
			  const struct lock_request *request)
{
	return node != request->node && !are_compatible(lock->granted[node], request->level);
}

/* Tells all that are in the way and do not know. Returns whether there is anybody. */
static bool warn(struct lock *lock, const struct lock_request *request)
{
	bool is_blocked = false;

	for (unsigned node = 0; node < LOCK_NODES; node++) {
		if (!is_in_the_way(lock, node, request))
			continue;
		is_blocked = true;
		if (lock->warned[node] < request->level) {
			lock->warned[node] = request->level;
			lock_send_bast(lock, node, request->level);
		}
	}
	return is_blocked;
}

static void remove_from_queue(struct lock *lock, unsigned place)
{
	lock->waiting--;
	for (; place < lock->waiting; place++)
		lock->queue[place] = lock->queue[place + 1];
}

static void set_level(struct lock *lock, unsigned node, enum lock_level level)
{
	lock->granted[node] = level;
	lock->warned[node] = LOCK_NL;
}

/* Grants what can be granted. */
static void pump(struct lock *lock)
{
	while (lock->waiting > 0 && !warn(lock, &lock->queue[0])) {
		struct lock_request first = lock->queue[0];

		remove_from_queue(lock, 0);
		set_level(lock, first.node, first.level);
		lock_send_ast(lock, first.node, first.level, true);
	}
}

/* Where a node waits, or `waiting`. */
static unsigned place_of(const struct lock *lock, unsigned node)
{
	unsigned place = 0;

	while (place < lock->waiting && lock->queue[place].node != node)
		place++;
	return place;
}

static void insert(struct lock *lock, const struct lock_request *request)
{
	unsigned place = lock->waiting++;

	while (request->is_conversion && place > 0 && !lock->queue[place - 1].is_conversion) {
		lock->queue[place] = lock->queue[place - 1];
		place--;
	}
	lock->queue[place] = *request;
}
/* } SOLUTION S7 */

int lock_request(struct lock *lock, unsigned node, enum lock_level level)
{
	/* SOLUTION S7 { */
	struct lock_request request = { node, level, lock->granted[node] != LOCK_NL };

	if (level <= lock->granted[node] || level > LOCK_EX)
		return -EINVAL;
	if (place_of(lock, node) < lock->waiting)
		return -EBUSY;
	insert(lock, &request);
	pump(lock);
	return 0;
	/* } SOLUTION S7 */
}

void lock_cancel(struct lock *lock, unsigned node)
{
	/* SOLUTION S7 { */
	unsigned place = place_of(lock, node);

	if (place == lock->waiting)
		return;
	remove_from_queue(lock, place);
	lock_send_ast(lock, node, lock->granted[node], false);
	pump(lock);
	/* } SOLUTION S7 */
}

int lock_lower(struct lock *lock, unsigned node, enum lock_level level)
{
	/* SOLUTION S7 { */
	if (level >= lock->granted[node])
		return -EINVAL;
	if (place_of(lock, node) < lock->waiting)
		return -EBUSY;
	set_level(lock, node, level);
	pump(lock);
	return 0;
	/* } SOLUTION S7 */
}
