/*
 * Locks of files: a range of bytes that an owner keeps from other owners. They are advisory: a
 * program that does not ask for them reads and writes as always.
 *
 * An owner is a table of descriptors (fcntl), whose locks on a file go as soon as it closes any of
 * its descriptors of that file; or an open file (flock), whose lock goes with it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct inode;

#define LOCK_LAST (uint64_t)INT64_MAX /* the last byte that a file can have */

enum lock_kind { LOCK_NONE, LOCK_SHARED, LOCK_EXCLUSIVE };

struct file_lock {
	struct file_lock *next; /* of the same inode */
	const void *owner;
	int32_t pid;	      /* for who asks */
	bool is_whole;	      /* flock's, which the others do not see */
	enum lock_kind kind;  /* of one that is set: not LOCK_NONE */
	uint64_t first, last; /* bytes */
};

/* The lock that keeps `wanted` from being set, or NULL; of several the one that begins first. */
const struct file_lock *lock_conflict(const struct inode *inode, const struct file_lock *wanted);

/* Makes the owner's lock on the bytes of `wanted` this one, or (LOCK_NONE) none. Returns 0; -ENOMEM
 * without memory; -ENOLCK if there are too many; or, if another's is in the way, -EAGAIN; with
 * `waits` it sleeps until that is gone, or returns -ERESTART for a signal, or -EDEADLK if programs
 * would wait for each other for ever. */
int lock_set(struct inode *inode, const struct file_lock *wanted, bool waits);

/* Removes all locks of an owner. */
void locks_drop(struct inode *inode, const void *owner);
