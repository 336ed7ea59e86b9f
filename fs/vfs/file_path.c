/*
 * From a directory, or an open file, back to its path: getcwd, and the links of /proc/PID.
 *
 * An inode does not know its names. So the walk goes up: the parent (lookup of "..") is read until
 * an entry has the number of the inode, and the name goes before those that were found so far:
 *
 *	at		buffer, filled from its end
 *	/usr/lib	.................../lib
 *	/usr		.............../usr/lib
 *	/		/usr/lib, moved to the beginning
 *
 * A mounted root has its directory's name. A file has one directory from its opening on; whether it
 * is there by its name is looked up each time, because it may have been renamed or removed.
 */
#include "fs/vfs/path.h"
#include "fs/vfs/anonymous.h"
#include "fs/vfs/names.h"
#include "kernel/report/printk.h"

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

	if (entry->number != search->inode->number || !name_is_entry(&entry->name))
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

/* Writes the path of a directory before the text at end, up to the buffer's own end, and moves
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
	if (anonymous_kind(file->inode))
		return snprintk(path, size, "anon_inode:%s", anonymous_kind(file->inode)) + 1;
	const char *form = inode_is(file->inode, S_IFIFO)    ? "pipe:[%u]"
			   : inode_is(file->inode, S_IFSOCK) ? "socket:[%u]"
							     : "/#%u (deleted)";

	return snprintk(path, size, form, file->inode->number) + 1;
}

int vfs_file_path(struct file *file, char *path, uint32_t size)
{
	char *end = path + size - 1;
	int length = -ENOENT;

	file->references++; /* its process may close it while a directory is read */
	*end = '\0';
	if (inode_is(file->inode, S_IFDIR))
		length = complete_path(file->inode, path, size, end);
	else if (file->directory && prepend_name(file->inode, file->directory, path, &end) == 0)
		length = complete_path(file->directory, path, size, end);
	if (length == -ENOENT)
		length = (int32_t)nameless_path(file, path, size);
	file_release(file);
	return length;
}
