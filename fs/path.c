/*
 * Path lookup: from "/bin/../etc/rc" to an inode.
 *
 * The walk holds one directory and the rest of the path. It takes a name off the rest, asks the
 * directory for it, and goes on there:
 *
 *	directory	last	rest
 *	/		bin	../etc/rc
 *	/bin		..	etc/rc
 *	/		etc	rc
 *	/etc		rc	""		the end: directory /etc, last name rc, its inode
 *
 * The last name is left to the caller: open makes a file where the inode is NULL, mkdir must find
 * it so. Slashes after it are remembered, since only a directory may be meant then.
 *
 * The walk holds a reference to the directory it is in, so that may be removed meanwhile. Lookup
 * may sleep. There are neither symbolic links nor mount points here.
 */
#include "fs/path.h"

#include <stddef.h>

#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

static struct inode *root;

/* A path and what is made of it has up to PATH_MAX bytes, too many for a stack. */
char *path_page(void)
{
	return page_alloc(0);
}

/* NULL is allowed. */
void path_page_free(char *page)
{
	if (page)
		page_free(page, 0);
}

void path_set_root(struct inode *inode)
{
	root = inode;
}

struct inode *path_root(void)
{
	return root;
}

/* Not of "/" (an empty name), "." and "..": those are there, and cannot be made or removed. */
bool path_is_entry(const struct path *path)
{
	return path->last.length > 0 && !name_is(&path->last, ".") && !name_is(&path->last, "..");
}

/* "file/" names a directory that is not one. */
bool path_is_wrong_kind(const struct path *path)
{
	return path->slashes && path->inode && !inode_is(path->inode, S_IFDIR);
}

/* Gives back both references. */
void path_release(struct path *path)
{
	inode_put(path->directory);
	inode_put(path->inode);
}

/* Takes the next name off the rest of the path; at its end an empty one. */
static void take_name(struct path *path)
{
	const char *at = path->rest;

	while (*at == '/')
		at++;
	const char *start = at;

	while (*at && *at != '/')
		at++;
	path->last = name_of(start, at - start);
	path->slashes = *at == '/';
	while (*at == '/')
		at++;
	path->rest = at;
}

/* Looks the last name up. That it is not there is no error yet. */
static int look_up(struct path *path)
{
	struct inode *directory = path->directory;

	if (!inode_is(directory, S_IFDIR))
		return -ENOTDIR;
	if (path->last.length > NAME_MAX)
		return -ENAMETOOLONG;
	if (path->last.length == 0 || name_is(&path->last, ".")) {
		path->inode = inode_hold(directory);
		return 0;
	}
	int error = directory->ops->lookup(directory, &path->last, &path->inode);

	return error == -ENOENT ? 0 : error;
}

/* Ends with the last name, or with an error; the references that path holds are then still to be
 * given back. */
static int walk(struct path *path)
{
	for (;;) {
		take_name(path);
		int error = look_up(path);

		if (error || !*path->rest)
			return error;
		if (!path->inode)
			return -ENOENT;
		inode_put(path->directory);
		path->directory = path->inode;
		path->inode = NULL;
	}
}

/* On success the caller owns the path, and calls path_release. */
int path_resolve(struct path *path, struct inode *start, const char *text, enum path_end end)
{
	if (!*text)
		return -ENOENT;
	*path = (struct path){ .rest = text };
	path->directory = inode_hold(*text == '/' ? root : start);
	int error = walk(path);

	if (error)
		path_release(path);
	return error;
}

/* For callers that want the inode and nothing else: it must exist. */
int path_find(struct inode *start, const char *text, enum path_end end, struct inode **found)
{
	struct path path;
	int error = path_resolve(&path, start, text, end);

	if (error)
		return error;
	error = path_is_wrong_kind(&path) ? -ENOTDIR : path.inode ? 0 : -ENOENT;
	if (!error)
		*found = inode_hold(path.inode);
	path_release(&path);
	return error;
}
