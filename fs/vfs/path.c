/*
 * Path lookup: from "/proc/../bin/sh" to an inode, across symbolic links and mount points.
 *
 * The walk holds one directory and the rest of the path. It takes a name off the rest, asks the
 * directory for it, crosses a mount point if one is there, and puts a symbolic link's target in
 * front of what is left:
 *
 *	directory	rest			next
 *	/		proc/../bin/sh		/proc is a mount point: cross it
 *	/proc		../bin/sh		a mounted root's ".." is its directory's
 *	/		bin/sh			/bin is a link to usr/bin
 *	/		usr/bin/sh		...
 *
 * At most LINKS_MAX links are followed, so that a circle of them ends with -ELOOP. The last name is
 * left to the caller: open makes a file where the inode is NULL, mkdir must find it so. Slashes
 * after it are remembered, since only a directory may be meant then.
 *
 * The walk holds a reference to the directory it is in, so that may be removed meanwhile. Lookup
 * may sleep.
 */
#include "fs/vfs/path.h"

#include "fs/path_page.h"
#include "kernel/lib/errno.h"

/* Linux's limit of links in a path; and from how many on a path that is too long is taken for a
 * circle.
 */
#define CIRCLE_LINKS 4
#define LINKS_MAX    40

static struct inode *root; /* of all processes */

void path_set_root(struct inode *inode)
{
	root = inode;
}

struct inode *path_root(void)
{
	return root;
}

/* Not "." or "..", nor nothing: a name that a directory could have an entry for. */
bool path_is_entry(const struct path *path)
{
	return name_is_entry(&path->last);
}

/* Everything that a walk holds: two inodes, and a page. */
void path_release(struct path *path)
{
	inode_put(path->directory);
	inode_put(path->inode);
	if (path->expanded)
		path_page_free(path->expanded);
}

/* Takes the next name off the rest of the path; at its end an empty one. */
static void take_name(struct path *path)
{
	const char *at = path->rest;

	while (*at == '/')
		at++;
	struct name name = { .text = at };

	for (; *at && *at != '/'; at++)
		name.hash = name_hash(name.hash, *at);
	name.length = at - name.text;
	path->last = name;
	path->slashes = *at == '/';
	while (*at == '/')
		at++;
	path->rest = at;
}

/* Moves a reference from a directory to what is mounted on it, last of all if it is several. */
static struct inode *across_mounts(struct inode *inode)
{
	while (inode && inode->mounted) {
		struct inode *mounted = inode_hold(inode->mounted);

		inode_put(inode);
		inode = mounted;
	}
	return inode;
}

/* The ".." that a file system knows is that of its own directories. That of a mounted root is where
 * it is mounted. */
int path_parent(struct inode *directory, struct inode **parent)
{
	static const struct name up = { "..", 2, 0 };

	while (directory->covers)
		directory = directory->covers;
	int error = directory->ops->lookup(directory, &up, parent);

	if (!error)
		*parent = across_mounts(*parent);
	return error;
}

/* Looks the last name up. A missing name is not an error yet. */
static int look_up_last(struct path *path)
{
	struct inode *directory = path->directory;

	if (!inode_is(directory, S_IFDIR))
		return -ENOTDIR;
	if (path->last.length > NAME_MAX)
		return -ENAMETOOLONG;
	if (!path_is_entry(path)) {
		if (path->last.length == 2)
			return path_parent(directory, &path->inode);
		path->inode = inode_hold(directory);
		return 0;
	}
	int error = directory->ops->lookup(directory, &path->last, &path->inode);

	if (error)
		return error == -ENOENT ? 0 : error;
	path->inode = across_mounts(path->inode);
	return 0;
}

/* Puts a symbolic link's target before the rest of the path. text is a page. If that is too small
 * after some links, they are a circle in which the path becomes longer each time. */
static int expand_into(char *text, struct path *path)
{
	uint32_t rest = strlen(path->rest);
	int length = path->inode->ops->read_link(path->inode, text, PATH_MAX);

	if (length <= 0)
		return length < 0 ? length : -ENOENT;
	if (length + 1 + rest + 1 > PATH_MAX)
		return path->links > CIRCLE_LINKS ? -ELOOP : -ENAMETOOLONG;
	if (path->slashes)
		text[length++] = '/';
	memcpy(text + length, path->rest, rest + 1);
	return 0;
}

/* The walk goes on from this directory, whose reference it takes over. */
static void restart_at(struct path *path, struct inode *directory)
{
	inode_put(path->directory);
	path->directory = directory;
}

/* Goes where a symbolic link leads that names no path. */
static int follow_jump(struct path *path)
{
	struct inode *to, *directory;
	int error = path->inode->ops->jump(path->inode, &to, &directory);

	if (error)
		return error;
	if (directory)
		restart_at(path, directory);
	inode_put(path->inode);
	path->inode = to;
	return 0;
}

/* Goes on where the symbolic link leads. -ELOOP after LINKS_MAX of them, -ENOMEM. */
static int expand_link(struct path *path)
{
	char *text = path->links++ < LINKS_MAX ? path_page() : NULL;

	if (!text)
		return path->links > LINKS_MAX ? -ELOOP : -ENOMEM;
	int error = expand_into(text, path);

	if (error) {
		path_page_free(text);
		return error;
	}
	if (path->expanded)
		path_page_free(path->expanded);
	path->expanded = text;
	path->rest = text;
	inode_put(path->inode);
	path->inode = NULL;
	if (*text == '/')
		restart_at(path, inode_hold(root));
	return 0;
}

/* What Linux calls protected_symlinks (proc(5)): in /tmp and the like another user's link may be a
 * trap.
 */
bool path_is_planted(const struct path *path)
{
	const uint32_t open_to_all = S_ISVTX | S_IWOTH;
	const struct inode *inode = path->inode, *directory = path->directory;

	return inode && (directory->mode & open_to_all) == open_to_all && inode->owner != 0 &&
	       inode->owner != directory->owner;
}

/* A link in the middle of a path is always followed. */
static bool is_followed(const struct path *path, enum path_end end)
{
	if (!path->inode || !inode_is(path->inode, S_IFLNK))
		return false;
	end &= ~PATH_FILE;
	return *path->rest || end == PATH_FOLLOW || (end == PATH_STAY && path->slashes);
}

/* One name in each round, until the rest is empty. After a link the rest is what it leads to, and
 * its first name is looked up in the directory where the link is, or in the root. */
static int walk_path(struct path *path, enum path_end end)
{
	for (;;) {
		int error;

		take_name(path);
		if (end & PATH_FILE && path->slashes && !*path->rest && path_is_entry(path) &&
		    inode_is(path->directory, S_IFDIR))
			return -EISDIR;
		error = look_up_last(path);
		if (error)
			return error;
		if (is_followed(path, end) && path->inode->ops->jump) {
			error = follow_jump(path);
			if (error)
				return error;
		} else if (is_followed(path, end)) {
			error = path_is_planted(path) && !*path->rest ? -EACCES : expand_link(path);
			if (error)
				return error;
			continue;
		}
		if (!*path->rest)
			return 0;
		if (!path->inode)
			return -ENOENT;
		restart_at(path, path->inode);
		path->inode = NULL;
	}
}

int path_resolve(struct path *path, struct inode *start, const char *text, enum path_end end)
{
	if (!*text)
		return -ENOENT;
	*path = (struct path){ .rest = text };
	path->directory = inode_hold(*text == '/' ? root : start);
	int error = walk_path(path, end);

	if (error)
		path_release(path);
	return error;
}

/* The path is released before it is walked again: a directory that was removed meanwhile can go. */
int path_do(struct inode *start, const char *text, enum path_end end, path_action *action,
	    void *context)
{
	struct path path;
	int error;

	do {
		error = path_resolve(&path, start, text, end);
		if (error)
			return error;
		error = action(&path, context);
		path_release(&path);
	} while (error == -ESTALE);
	return error;
}

bool path_is_wrong_kind(const struct path *path)
{
	return path->slashes && path->inode && !inode_is(path->inode, S_IFDIR);
}

/* For path_find. */
static int find_resolved(struct path *path, void *found)
{
	if (path_is_wrong_kind(path))
		return -ENOTDIR;
	if (!path->inode)
		return -ENOENT;
	*(struct inode **)found = inode_hold(path->inode);
	return 0;
}

int path_find(struct inode *start, const char *text, enum path_end end, struct inode **found)
{
	return path_do(start, text, end, find_resolved, found);
}
