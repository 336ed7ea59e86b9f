/*
 * Paths: from a text to an inode.
 *
 * The walk holds one directory and the rest of the path, and takes one name off it at a time. A
 * symbolic link's target is written in front of the rest, as if the caller had asked for that:
 *
 *	rest		here
 *	bin/sh		/		bin is a link to usr/bin: its target goes in front
 *	usr/bin/sh	/
 *	/bin/sh		/usr
 *	/sh		/usr/bin
 *			/usr/bin/sh
 *
 * The rest is at the end of a page, so there is room before it. A target that begins with '/'
 * starts at the root again, any other in the directory of the link. At most LINKS_MAX links are
 * followed, so a circle of them ends with -ELOOP.
 *
 * Waits for the drive. There are no mount points and no permissions: this is for reading one image.
 */
#include "fs/ext/internal.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

#define LINKS_MAX 8

/* What is left of a path: at the end of its page, so that there is room before it. */
struct walk {
	char *page;
	char *rest;
	unsigned links; /* followed so far */
};

/* Looks one name up in one directory. */
static int find(const struct ext_inode *directory, const char *name, size_t length,
		struct ext_inode *out)
{
	uint32_t number;
	int error = ext_find(directory, name, (uint32_t)length, &number);

	return error ? error : ext_inode_read(directory->fs, number, out);
}

/* Checks a target that was written in front of the path: a NUL in it would end the path there, and
 * drop what follows. */
static int check_target(const struct ext_inode *link, const char *target)
{
	for (uint64_t i = 0; i < link->size; i++)
		if (target[i] == '\0')
			return ext_corrupt_inode(link, "NUL at %ju of %ju in a link's target", i,
						 link->size);
	return 0;
}

/* Puts the target of a link in front of the path. A relative one starts from `here`, the directory
 * of the link. */
static int follow(struct walk *walk, const struct ext_inode *link, struct ext_inode *here)
{
	if (walk->links++ == LINKS_MAX)
		return -ELOOP;
	if (link->size > (size_t)(walk->rest - walk->page))
		return -ENAMETOOLONG;
	walk->rest -= link->size;
	int length = ext_read(link, 0, walk->rest, (uint32_t)link->size);

	if (length < 0)
		return length;
	int error = check_target(link, walk->rest);

	if (error)
		return error;
	return *walk->rest == '/' ? ext_inode_read(link->fs, EXT_ROOT_INODE, here) : 0;
}

/* The length of the first name of a path. */
static size_t name_end(const char *path)
{
	size_t length = 0;

	while (path[length] != '\0' && path[length] != '/')
		length++;
	return length;
}

/* Takes slashes and a name off the path, and moves *here there. */
static int step(struct walk *walk, struct ext_inode *here)
{
	struct ext_inode next;

	if (!ext_is_directory(here))
		return -ENOTDIR;
	while (*walk->rest == '/')
		walk->rest++;
	size_t length = name_end(walk->rest);

	if (length == 0)
		return 0;
	if (length > EXT_NAME_MAX)
		return -ENAMETOOLONG;
	int error = find(here, walk->rest, length, &next);

	if (error)
		return error;
	walk->rest += length;
	if (ext_is_symlink(&next))
		return follow(walk, &next, here);
	*here = next;
	return 0;
}

/* The page is freed on every way out. ext_find does the names "." and "..": they are entries like
 * others. */
int ext_lookup(struct ext_fs *fs, const char *path, struct ext_inode *out)
{
	size_t size = strlen(path) + 1;
	struct walk walk = { .links = 0 };

	if (size == 1)
		return -ENOENT;
	if (size > PAGE_SIZE)
		return -ENAMETOOLONG;
	walk.page = page_alloc(0);
	if (!walk.page)
		return -ENOMEM;
	walk.rest = memcpy(walk.page + PAGE_SIZE - size, path, size);
	int error = ext_inode_read(fs, EXT_ROOT_INODE, out);

	while (!error && *walk.rest != '\0')
		error = step(&walk, out);
	page_free(walk.page, 0);
	return error;
}
