/*
 * Locks of files. Each inode has a list of those that are set; an owner's do not overlap, and where
 * two of one kind touch they are one:
 *
 *	A has		0 - 99 shared			200 - 299 shared
 *	A wants		       50 - 149 exclusive
 *	then A has	0 - 49 shared	50 - 149 excl.	200 - 299 shared
 *
 * So a new lock first grows over those of its kind that it touches, and is then cut out of all of
 * the owner's. A lock in the middle of another makes two of that: the second is the spare.
 *
 * A task that must wait sleeps until any lock has gone, and looks again. Programs that wait for
 * each other are found before the last of them sleeps (fcntl(2): EDEADLK):
 *
 *	A has 1, waits for 2		B has 2, wants 1: B's lock is in A's way, A's in B's
 *
 * Two kinds do not see each other, as on Linux: fcntl's ranges, whose owner is a table of
 * descriptors, and flock's whole files, whose owner is an open file.
 */
#include "fs/vfs/locks.h"

#include "fs/files.h"
#include "fs/vfs/inode.h"
#include "kernel/lib/list.h"
#include "mm/pool.h"

static struct pool pool = POOL_INITIALIZER(struct file_lock);
#define LOCKS_MOST 8192u /* of all programs together: they are the kernel's memory */

static struct wait_queue removed; /* wakes when any lock went, or became less */

/* Who waits for a lock, on its stack. */
struct lock_wait {
	struct list link;
	struct inode *inode;
	const struct file_lock *wanted;
};

static struct list waits = LIST_EMPTY(waits);
#define CIRCLE_MOST 10u /* programs that wait for each other */

static bool is_same_owner(const struct file_lock *a, const struct file_lock *b)
{
	return a->owner == b->owner && a->is_whole == b->is_whole;
}

/* Do they overlap; or, with `reach` 1, touch at least? */
static bool meets(const struct file_lock *a, const struct file_lock *b, uint32_t reach)
{
	return a->first <= b->last + reach && b->first <= a->last + reach;
}

const struct file_lock *lock_conflict(const struct inode *inode, const struct file_lock *wanted)
{
	const struct file_lock *first = NULL;

	for (const struct file_lock *lock = inode->locks; lock; lock = lock->next)
		if (lock->is_whole == wanted->is_whole && lock->owner != wanted->owner &&
		    meets(lock, wanted, 0) && wanted->kind + lock->kind >= 3 &&
		    (!first || lock->first < first->first))
			first = lock;
	return first;
}

/* Over the owner's locks of its kind that it overlaps or touches: they become one. */
static void grow_lock(const struct inode *inode, struct file_lock *new)
{
	for (const struct file_lock *lock = inode->locks; lock; lock = lock->next) {
		if (!is_same_owner(lock, new) || lock->kind != new->kind || !meets(lock, new, 1))
			continue;
		new->first = lock->first < new->first ? lock->first : new->first;
		new->last = lock->last > new->last ? lock->last : new->last;
	}
}

/* Takes the bytes of `out` from a lock. Returns what is to be next in the list's place: the lock,
 * or, if nothing is left of it, the one after it. *spare is NULL when it was needed. */
static struct file_lock *cut_lock(struct file_lock *lock, const struct file_lock *out,
				  struct file_lock **spare)
{
	struct file_lock *next = lock->next;
	bool has_start = lock->first<out->first, has_end = lock->last> out->last;

	if (has_start && has_end) {
		**spare = *lock;
		(*spare)->first = out->last + 1;
		lock->next = *spare;
		*spare = NULL;
	}
	if (has_start)
		lock->last = out->first - 1;
	else if (has_end)
		lock->first = out->last + 1;
	else
		pool_free(&pool, lock);
	return has_start || has_end ? lock : next;
}

/* LOCK_NONE only cuts. Whatever was not needed of the two goes back. */
static void replace_locks(struct inode *inode, struct file_lock *new, struct file_lock *spare)
{
	struct file_lock **at = &inode->locks;

	if (new->kind != LOCK_NONE)
		grow_lock(inode, new);
	while (*at) {
		struct file_lock *lock = *at;

		if (is_same_owner(lock, new) && meets(lock, new, 0))
			*at = cut_lock(lock, new, &spare);
		if (*at == lock)
			at = &lock->next;
	}
	new->next = inode->locks;
	if (new->kind != LOCK_NONE)
		inode->locks = new;
	else
		pool_free(&pool, new);
	if (spare)
		pool_free(&pool, spare);
	wait_wake(&removed);
}

/* Does the lock that is in the way belong to somebody that waits, itself or over others, for the
 * same owner? Each owner is asked for one lock only, as on Linux. Locks of open files, which have
 * no pid, and flock's are not looked at: their owner may be several programs. */
static bool is_deadlock(const struct inode *inode, const struct file_lock *wanted)
{
	const void *owner = wanted->owner;

	for (unsigned i = 0; i < CIRCLE_MOST && wanted->pid > 0; i++) {
		const struct file_lock *lock = lock_conflict(inode, wanted);
		struct list *each = waits.next;

		if (!lock || lock->owner == owner)
			return lock;
		while (each != &waits &&
		       list_entry(each, struct lock_wait, link)->wanted->owner != lock->owner)
			each = each->next;
		if (each == &waits)
			return false;
		inode = list_entry(each, struct lock_wait, link)->inode;
		wanted = list_entry(each, struct lock_wait, link)->wanted;
		if (wanted->is_whole)
			return false;
	}
	return false;
}

/* The inode is held: its last name may go meanwhile. */
static int wait_for_lock(struct inode *inode, const struct file_lock *wanted)
{
	struct lock_wait wait = { { NULL, NULL }, inode_hold(inode), wanted };
	bool circle = false;

	list_append(&waits, &wait.link);
	int error = wait_event(&removed, !lock_conflict(inode, wanted) ||
					     (circle = is_deadlock(inode, wanted)));

	list_remove(&wait.link);
	inode_put(inode);
	return circle ? -EDEADLK : error;
}

/* Are there more locks after this than before, and too many? A program must always be able to give
 * one back; but not its middle, which makes two of one. */
static bool is_one_too_many(const struct inode *inode, const struct file_lock *wanted)
{
	const struct file_lock *lock = inode->locks;

	if (pool.used < LOCKS_MOST)
		return false;
	while (wanted->kind == LOCK_NONE && lock &&
	       !(is_same_owner(lock, wanted) && lock->first < wanted->first &&
		 lock->last > wanted->last))
		lock = lock->next;
	return lock || wanted->kind != LOCK_NONE;
}

/* Takes an owner's locks away: all, or only those of a whole file. */
static void drop_locks(struct inode *inode, const void *owner, bool only_whole)
{
	struct file_lock **at = &inode->locks;

	while (*at) {
		struct file_lock *lock = *at;

		if (lock->owner != owner || (only_whole && !lock->is_whole)) {
			at = &lock->next;
			continue;
		}
		*at = lock->next;
		pool_free(&pool, lock);
	}
	wait_wake(&removed);
}

/* What a call needs is allocated before anything changes. But who changes a lock of a whole file
 * into one that must wait, or fails, has lost the old one first: else two that have it shared, and
 * want it alone, would wait for each other for ever (flock(2)). */
int lock_set(struct inode *inode, const struct file_lock *wanted, bool waits)
{
	int error = 0;

	if (wanted->kind != LOCK_NONE && lock_conflict(inode, wanted)) {
		if (wanted->is_whole)
			drop_locks(inode, wanted->owner, true);
		error = waits ? wait_for_lock(inode, wanted) : -EAGAIN;
	}
	if (error)
		return error;
	if (is_one_too_many(inode, wanted))
		return -ENOLCK;
	struct file_lock *new = pool_alloc(&pool), *spare = new ? pool_alloc(&pool) : NULL;

	if (!spare) {
		if (new)
			pool_free(&pool, new);
		return -ENOMEM;
	}
	*new = *wanted;
	replace_locks(inode, new, spare);
	return 0;
}

void locks_drop(struct inode *inode, const void *owner)
{
	drop_locks(inode, owner, false);
}

/* A table of descriptors has closed one of them. */
void files_closing(const struct files *files, const struct file *file)
{
	if (file->inode && file->inode->locks)
		locks_drop(file->inode, files);
}
