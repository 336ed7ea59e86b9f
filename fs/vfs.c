/* Opening, and changing directories. */
#include "fs/vfs.h"

#include <stddef.h>

#include "fs/path.h"
#include "kernel/lib/errno.h"
#include "kernel/report/printk.h"
#include "kernel/lib/string.h"

#define MOUNTS 8u

static struct mount mounts[MOUNTS];
static uint32_t mount_count;

int vfs_truncate(struct inode *inode, uint64_t size)
{
	if (inode_is(inode, S_IFDIR))
		return -EISDIR;
	if (!inode_is(inode, S_IFREG) || !inode->ops->truncate)
		return -EINVAL;
	if (inode->programs > 0)
		return -ETXTBSY;
	return inode->ops->truncate(inode, size);
}

/* ---- opening ---- */

/* What of open's flags counts beside O_PATH. */
#define PLACE_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Makes what is not there, for O_CREAT. */
static int create_file(struct path *path, uint32_t flags, uint32_t mode)
{
	struct inode *directory = path->directory;

	if (!(flags & O_CREAT) || directory->links == 0)
		return -ENOENT;
	if (!directory->ops->create)
		return -EACCES;
	return directory->ops->create(directory, &path->last, S_IFREG | (mode & S_ALL), 0,
				      &path->inode);
}

/* May what is there be opened like this? */
static int check_open(const struct inode *inode, uint32_t flags)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;

	if ((flags & O_CREAT) && (flags & O_EXCL))
		return -EEXIST;
	if (inode_is(inode, S_IFLNK) && !(flags & O_PATH))
		return -ELOOP;
	if (inode_is(inode, S_IFDIR))
		return writes || flags & O_CREAT ? -EISDIR : 0;
	return flags & O_DIRECTORY ? -ENOTDIR : 0;
}

static int open_resolved(struct path *path, uint32_t flags, uint32_t mode, struct file **file)
{
	bool is_new = !path->inode;

	if (path->slashes && flags & O_CREAT && path_is_entry(path))
		return -EISDIR;
	if (path_is_wrong_kind(path))
		return -ENOTDIR;
	int error = is_new ? create_file(path, flags, mode) : check_open(path->inode, flags);

	if (!error && !is_new && flags & O_TRUNC && inode_is(path->inode, S_IFREG))
		error = vfs_truncate(path->inode, 0);
	if (!error)
		error = file_open_inode(path->inode, flags, file);
	if (!error)
		(*file)->directory = inode_hold(path->directory);
	return error;
}

int vfs_open(struct inode *start, const char *text, uint32_t flags, uint32_t mode,
	     struct file **file)
{
	flags = flags & O_PATH ? flags & PLACE_FLAGS : flags;
	bool exclusive = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
	struct path path;
	int error = path_resolve(&path, start, text,
				 exclusive	      ? PATH_NAME
				 : flags & O_NOFOLLOW ? PATH_STAY
				 : flags & O_CREAT    ? PATH_CREATE
						      : PATH_FOLLOW);

	if (error)
		return error;
	error = open_resolved(&path, flags, mode, file);
	path_release(&path);
	return error;
}

/* ---- names ---- */

/* Finds the place of a name that is not there yet. */
static int resolve_new(struct path *path, struct inode *start, const char *text, bool directory)
{
	int error = path_resolve(path, start, text, PATH_NAME);

	if (error)
		return error;
	if (path->inode)
		error = -EEXIST;
	else if ((path->slashes && !directory) || path->directory->links == 0)
		error = -ENOENT;
	if (error)
		path_release(path);
	return error;
}

int vfs_make(struct inode *start, const char *text, uint32_t mode, uint32_t device)
{
	struct path path;
	int error = resolve_new(&path, start, text, (mode & S_IFMT) == S_IFDIR);

	if (error)
		return error;
	const struct inode_ops *ops = path.directory->ops;

	error = ops->create ? ops->create(path.directory, &path.last, mode, device, &path.inode)
			    : -EPERM;
	path_release(&path);
	return error;
}

int vfs_symlink(struct inode *start, const char *text, const char *target)
{
	struct path path;
	int error = *target ? resolve_new(&path, start, text, false) : -ENOENT;

	if (error)
		return error;
	const struct inode_ops *ops = path.directory->ops;

	error = ops->symlink ? ops->symlink(path.directory, &path.last, target) : -EPERM;
	path_release(&path);
	return error;
}

static int link_resolved(struct path *path, struct inode *inode)
{
	if (inode->filesystem != path->directory->filesystem)
		return -EXDEV;
	if (inode_is(inode, S_IFDIR) || !path->directory->ops->link)
		return -EPERM;
	return path->directory->ops->link(path->directory, &path->last, inode);
}

int vfs_link(struct inode *start, const char *text, struct inode *inode)
{
	struct path path;
	int error = resolve_new(&path, start, text, false);

	if (error)
		return error;
	error = link_resolved(&path, inode);
	path_release(&path);
	return error;
}

/* Is it a directory entry, of the right kind, that may be removed? */
static int check_remove(const struct path *path, bool directory)
{
	if (!path->inode)
		return -ENOENT;
	if (path_is_wrong_kind(path) || (directory && !inode_is(path->inode, S_IFDIR)))
		return -ENOTDIR;
	if (!directory && inode_is(path->inode, S_IFDIR))
		return -EISDIR;
	if (!path_is_entry(path))
		return name_is(&path->last, "..")  ? -ENOTEMPTY
		       : name_is(&path->last, ".") ? -EINVAL
						   : -EBUSY;
	if (path->inode->covers)
		return -EBUSY;
	return path->directory->ops->remove ? 0 : -EPERM;
}

int vfs_remove(struct inode *start, const char *text, bool directory)
{
	struct path path;
	int error = path_resolve(&path, start, text, PATH_NAME);

	if (error)
		return error;
	error = check_remove(&path, directory);
	if (!error)
		error = path.directory->ops->remove(path.directory, &path.last, path.inode);
	path_release(&path);
	return error;
}

/* Is `directory` the inode, or anywhere below it? */
static bool is_below(struct inode *directory, const struct inode *inode)
{
	struct inode *parent;

	inode_hold(directory);
	while (directory != inode && path_parent(directory, &parent) == 0) {
		bool at_root = parent == directory;

		inode_put(directory);
		directory = parent;
		if (at_root)
			break;
	}
	inode_put(directory);
	return directory == inode;
}

/* The new name may be somebody's, if the kinds fit. */
static int check_replace(const struct inode *inode, const struct path *to)
{
	bool is_directory = inode_is(inode, S_IFDIR);

	if (!to->inode)
		return to->slashes && !is_directory ? -ENOTDIR : 0;
	if (to->inode->covers)
		return -EBUSY;
	if (is_directory != inode_is(to->inode, S_IFDIR))
		return is_directory ? -ENOTDIR : -EISDIR;
	return 0;
}

static int check_rename(const struct path *from, const struct path *to)
{
	if (!from->inode)
		return -ENOENT;
	if (!path_is_entry(from) || !path_is_entry(to) || from->inode->covers)
		return -EBUSY;
	if (from->directory->filesystem != to->directory->filesystem)
		return -EXDEV;
	if (to->directory->links == 0)
		return -ENOENT;
	if (path_is_wrong_kind(from) || path_is_wrong_kind(to))
		return -ENOTDIR;
	if (inode_is(from->inode, S_IFDIR) && is_below(to->directory, from->inode))
		return -EINVAL;
	if (to->inode && is_below(from->directory, to->inode))
		return -ENOTEMPTY;
	if (!from->directory->ops->rename)
		return -EPERM;
	return check_replace(from->inode, to);
}

static int rename_resolved(struct path *from, struct path *to)
{
	int error = check_rename(from, to);

	if (error || from->inode == to->inode) /* two names of one file: nothing to be done */
		return error;
	return from->directory->ops->rename(from->directory, &from->last, from->inode,
					    to->directory, &to->last, to->inode);
}

int vfs_rename(struct inode *start, const char *text, struct inode *new_start, const char *new_text)
{
	struct path from, to;
	int error = path_resolve(&from, start, text, PATH_NAME);

	if (error)
		return error;
	error = path_resolve(&to, new_start, new_text, PATH_NAME);
	if (!error) {
		error = rename_resolved(&from, &to);
		path_release(&to);
	}
	path_release(&from);
	return error;
}

/* ---- the path of a directory ---- */

/* Looks in a directory for the name of an inode. */
struct name_search {
	const struct inode *inode; /* not a mounted root */
	char *end;		   /* the name goes before it */
	char *start;		   /* and not below this */
	bool is_found;
};

static bool search_visit(void *context, const struct directory_entry *entry)
{
	struct name_search *search = context;
	uint32_t length = entry->name.length;

	if (entry->number != search->inode->number || name_is(&entry->name, ".") ||
	    name_is(&entry->name, ".."))
		return true;
	search->is_found = true;
	if ((uint32_t)(search->end - search->start) <= length)
		return false;
	search->end -= length + 1;
	*search->end = '/';
	memcpy(search->end + 1, entry->name.text, length);
	return false;
}

/* Puts the name of a directory in its parent, with a slash, before *end. */
static int prepend_name(struct inode *directory, struct inode *parent, char *start, char **end)
{
	uint64_t position = 0;

	while (directory->covers)
		directory = directory->covers;
	struct name_search search = { directory, *end, start, false };

	parent->ops->iterate(parent, &position, search_visit, &search);
	if (!search.is_found)
		return -ENOENT;
	if (search.end == *end)
		return -ERANGE;
	*end = search.end;
	return 0;
}

/* Goes up to the root and writes the names from the end of the buffer on. */
static int prepend_all(struct inode **at, char *start, char **end)
{
	struct inode *parent;
	int error = 0;

	while (!error && *at != path_root()) {
		error = (*at)->links == 0 ? -ENOENT : path_parent(*at, &parent);
		if (error)
			break;
		error = prepend_name(*at, parent, start, end);
		inode_put(*at);
		*at = parent;
	}
	return error;
}

/* Writes the path of a directory before what stands at end, up to the buffer's own end, and moves
 * all of it to the beginning. Returns its length. */
static int complete_path(struct inode *directory, char *path, uint32_t size, char *end)
{
	struct inode *at = inode_hold(directory);
	int error = prepend_all(&at, path, &end);

	inode_put(at);
	if (error)
		return error;
	if (!*end)
		*--end = '/';
	uint32_t length = path + size - end;

	memmove(path, end, length);
	return length;
}

int vfs_directory_path(struct inode *directory, char *path, uint32_t size)
{
	if (size < 2)
		return -ERANGE;
	path[size - 1] = '\0';
	return complete_path(directory, path, size, path + size - 1);
}

/* What Linux shows where a file has no name, or none any more. */
static uint32_t nameless_path(const struct file *file, char *path, uint32_t size)
{
	const char *kind = inode_is(file->inode, S_IFIFO) ? "pipe" : "anon_inode";

	if (!file->directory)
		return snprintk(path, size, "%s:[%u]", kind, file->inode->number) + 1;
	return snprintk(path, size, "/#%u (deleted)", file->inode->number) + 1;
}

int vfs_file_path(const struct file *file, char *path, uint32_t size)
{
	char *end = path + size - 1;
	int length = -ENOENT;

	*end = '\0';
	if (inode_is(file->inode, S_IFDIR))
		length = complete_path(file->inode, path, size, end);
	else if (file->directory && prepend_name(file->inode, file->directory, path, &end) == 0)
		length = complete_path(file->directory, path, size, end);
	return length == -ENOENT ? (int32_t)nameless_path(file, path, size) : length;
}

/* ---- mounts ---- */

int vfs_mount(const char *source, const char *type, const char *path, struct inode *root)
{
	if (mount_count == MOUNTS)
		return -ENOMEM;
	if (!path_root()) {
		path_set_root(root);
	} else {
		struct inode *covered;
		int error = path_find(path_root(), path, PATH_FOLLOW, &covered);

		if (error)
			return error;
		covered->mounted = root; /* the reference to `covered` stays, as root->covers */
		root->covers = covered;
	}
	mounts[mount_count++] = (struct mount){ source, type, path, root };
	return 0;
}

const struct mount *vfs_mount_at(uint32_t index)
{
	return index < mount_count ? &mounts[index] : NULL;
}
