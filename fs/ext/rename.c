/*
 * Names that move, and names that change their inodes, as one change.
 *
 *	rename a to d/b			before				after
 *	the directory of a		a: 12				-
 *	d				b: 15, or nothing		b: 12
 *	inode 12, if a directory	..: the directory of a		..: d
 *	inode 15				1 link			0: an orphan
 *
 * So up to three blocks of names change: those with the old name, with the new one, and with "..".
 * All are found, and become part of the transaction, before the first is written to: after a
 * failure nothing has changed. When a directory moves to another parent, the link of its ".." moves
 * from parent to parent.
 *
 * That no directory goes into itself, the caller has checked. Calls for one mount are serialized.
 * May wait for the drive.
 */
#include "fs/ext/directories.h"
#include "kernel/lib/errno.h"

static const struct ext_name up_name = { "..", 2 };

/* One end of a move: a name in a directory, the inode that it has, and that inode's "..", where
 * that changes. */
struct end {
	struct ext_inode *directory;
	struct ext_name name;
	struct ext_inode *inode; /* NULL: the name is new */
	struct ext_slot slot, up;
};

static void put_back(struct end *end)
{
	bcache_put(end->slot.buffer);
	bcache_put(end->up.buffer);
	end->slot.buffer = end->up.buffer = NULL;
}

/* Finds the entry of a name, or room for a new one. */
static int prepare_name(struct end *end)
{
	int error = end->inode ? ext_name_own(end->directory, &end->name, end->inode, &end->slot)
			       : ext_name_room(end->directory, &end->name, &end->slot);

	if (error)
		end->slot.buffer = NULL;
	return error;
}

/* Finds the ".." of an inode that goes to another directory, if it has one. */
static int prepare_up(struct end *end, const struct end *other)
{
	if (!end->inode || !ext_is_directory(end->inode) || end->directory == other->directory)
		return 0;
	int error = ext_name_own(end->inode, &up_name, end->directory, &end->up);

	if (error)
		end->up.buffer = NULL;
	return error == -ENOENT
		   ? ext_corrupt_inode(end->inode, "its .. is not the directory it is in")
		   : error;
}

/* The ".." of end's inode becomes the other end's directory, and its link goes there. */
static void move_up(struct end *end, struct end *other)
{
	if (!end->up.buffer)
		return;
	ext_name_set(end->inode, &end->up, other->directory);
	ext_links_fewer(end->directory);
	ext_links_more(other->directory);
}

/* The new name is written first. In the same block that may have moved the entry before the old
 * one, so that is found again: in memory, where it is. */
static void move_name(struct end *from, struct end *to)
{
	if (to->inode)
		ext_name_set(to->directory, &to->slot, from->inode);
	else
		ext_name_put(to->directory, &to->slot, &to->name, from->inode);
	ext_entry_look(from->directory, &from->slot, &from->name, 0);
	ext_name_drop(from->directory, &from->slot);
	if (to->inode && ext_is_directory(to->inode))
		ext_links_fewer(to->directory);
}

static void exchange_names(struct end *one, struct end *other)
{
	ext_name_set(one->directory, &one->slot, other->inode);
	ext_name_set(other->directory, &other->slot, one->inode);
	move_up(other, one);
	ext_touch_inode(other->inode);
}

/* Room for the new name comes first: making it may move entries. The link of what is replaced comes
 * last, because it cannot be undone. */
static int prepare(struct end *from, struct end *to, bool exchange)
{
	int error = prepare_name(to) ?: prepare_name(from) ?: prepare_up(from, to);

	if (!error && exchange)
		error = prepare_up(to, from);
	else if (!error && to->inode)
		error = ext_link_gone(to->inode);
	return error;
}

/* What rename(2) refuses, as far as the file system must know. */
static int check_move(const struct end *from, const struct end *to)
{
	bool directory = ext_is_directory(from->inode);

	if (!to->inode)
		return directory && from->directory != to->directory
			   ? ext_links_check(to->directory)
			   : 0;
	if (directory != ext_is_directory(to->inode))
		return directory ? -ENOTDIR : -EISDIR;
	return directory ? ext_directory_empty(to->inode) : 0;
}

/* Only one of the two is a directory, so a link moves: is there room for it? */
static int check_exchange(const struct end *one, const struct end *other)
{
	bool same = ext_is_directory(one->inode) == ext_is_directory(other->inode);

	if (same || one->directory == other->directory)
		return 0;
	return ext_links_check(ext_is_directory(one->inode) ? other->directory : one->directory);
}

/* Everything is found first, and then all of it is written. */
static int move_names(struct end *from, struct end *to, bool exchange)
{
	struct ext_names_change change;
	int error = ext_name_check(from->directory, &from->name)
			?: ext_name_check(to->directory, &to->name);

	if (!error)
		error = exchange ? check_exchange(from, to) : check_move(from, to);
	if (error || (to->inode && to->inode->number == from->inode->number))
		return error; /* two names of one inode: both remain, as POSIX has it */
	error = ext_names_begin(&change, from->directory, to->directory, from->inode, to->inode);
	if (error)
		return error;
	error = prepare(from, to, exchange);
	if (error) {
		put_back(from);
		put_back(to);
		return ext_names_end(&change, error);
	}
	if (exchange)
		exchange_names(from, to);
	else
		move_name(from, to);
	move_up(from, to);
	ext_touch(from->directory);
	ext_touch(to->directory);
	ext_touch_inode(from->inode);
	return ext_names_end(&change, 0);
}

int ext_rename(struct ext_inode *from, const struct ext_name *name, struct ext_inode *inode,
	       struct ext_inode *to, const struct ext_name *new_name, struct ext_inode *other,
	       bool exchange)
{
	struct end old = { .directory = from, .name = *name, .inode = inode };
	struct end new = { .directory = to, .name = *new_name, .inode = other };

	return move_names(&old, &new, exchange);
}
