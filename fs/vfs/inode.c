/*
 * Common to the inodes of all file systems: names, times, and numbers.
 *
 * A name in a path is a piece of a longer text, so it has a length instead of a NUL. Its hash is
 * made once, when the name is cut off the path; a directory compares hashes first and letters only
 * where those agree.
 *
 * Times are nanoseconds since 1970, taken when something changes. All of this is for the current
 * task; nothing sleeps, unless a file system's `changed` does.
 */
#include "fs/vfs/inode.h"

struct name name_of(const char *text, uint32_t length)
{
	struct name name = { text, length, 0 };

	for (uint32_t i = 0; i < length; i++)
		name.hash = name_hash(name.hash, text[i]);
	return name;
}

/* ctime changes with everything, mtime with the contents only (stat(2)). */
void inode_touch(struct inode *inode, bool contents)
{
	inode->changed = time_wall_ns();
	if (contents)
		inode->modified = inode->changed;
	if (inode->ops->changed)
		inode->ops->changed(inode);
}

/* The caller owns the one reference; the link is the name that the inode is about to get. */
void inode_initialize(struct inode *inode, uint32_t mode)
{
	uint64_t now = time_wall_ns();

	inode->references = 1;
	inode->links = 1;
	inode->mode = mode;
	inode->accessed = inode->modified = inode->changed = now;
}

/* st_dev: two inodes are the same file if this and the inode's number are. */
uint32_t filesystem_number(void)
{
	static uint32_t last;

	return ++last;
}
