/* What archives may have beyond directories and files with one name: symbolic links, several names
 * of one file, and a name that comes twice. */
#include <stddef.h>

#include "fs/path.h"
#include "fs/ram/initramfs_internal.h"
#include "fs/vfs.h"
#include "kernel/lib/errno.h"
#include "kernel/lib/startup.h"
#include "kernel/lib/string.h"
#include "fs/linux/names.h"
#include "mm/pool.h"

/* A file with several names that has been met. They are entries with the same inode number; the
 * contents are in any one of them. */
struct met {
	uint32_t fields[FIELDS];
	struct inode *inode; /* a reference */
	struct met *next;
};

static struct pool met_pool = POOL_INITIALIZER(struct met);

static struct met *find_met(struct archive *archive)
{
	struct met *met = archive->links;

	while (met && (met->fields[INODE] != archive->fields[INODE] ||
		       met->fields[MAJOR] != archive->fields[MAJOR] ||
		       met->fields[MINOR] != archive->fields[MINOR]))
		met = met->next;
	return met;
}

/* Remembers a file that has more names, of which it takes over the reference. */
static int remember(struct archive *archive, struct inode *inode)
{
	struct met *met = pool_alloc(&met_pool);

	if (!met) {
		inode_put(inode);
		return -ENOMEM;
	}
	memcpy(met->fields, archive->fields, sizeof(met->fields));
	met->inode = inode;
	met->next = archive->links;
	archive->links = met;
	return 0;
}

static void archive_links_end(struct archive *archive)
{
	while (archive->links) {
		struct met *met = archive->links;

		archive->links = met->next;
		inode_put(met->inode);
		pool_free(&met_pool, met);
	}
}

static int make_link(struct archive *archive)
{
	uint32_t length = archive->fields[SIZE];

	if (length == 0 || length >= PATH_MAX)
		return archive_fail(archive, -EINVAL, "a symbolic link to nowhere, or too far");
	int error = archive_read(archive, archive->contents, length);

	if (error)
		return error;
	archive->contents[length] = '\0';
	error = vfs_remove(archive->root, archive->name, false);
	if (error && error != -ENOENT)
		return error;
	error = vfs_symlink(archive->root, archive->name, archive->contents);
	return error ? error : 1;
}

/* Makes another name of a file that was met, or the first of several. */
static int make_one_of_many(struct archive *archive)
{
	const uint32_t *fields = archive->fields;
	struct met *met = find_met(archive);
	struct inode *inode;
	int error = met ? vfs_link(archive->root, archive->name, met->inode)
			: vfs_make(archive->root, archive->name, fields[MODE] & (S_IFMT | S_ALL),
				   fields[DEVICE_MAJOR] << 8 | fields[DEVICE_MINOR]);

	if (!error && !met)
		error = path_find(archive->root, archive->name, PATH_NAME, &inode);
	if (!error && !met)
		error = remember(archive, inode);
	return error ? error : 1;
}

/* What had the name before goes. */
static int archive_links_make(struct archive *archive)
{
	uint32_t type = archive->fields[MODE] & S_IFMT;

	if (type == S_IFLNK)
		return make_link(archive);
	if (type != S_IFREG && type != S_IFCHR && type != S_IFBLK && type != S_IFIFO)
		return 0;
	int error = vfs_remove(archive->root, archive->name, false);

	if (error && error != -ENOENT)
		return error;
	return archive->fields[LINKS] > 1 ? make_one_of_many(archive) : 0;
}

static void archive_links_start(void)
{
	static const struct initramfs_extension links = { archive_links_make, archive_links_end };

	initramfs_extend(&links);
}
STARTUP(archive_links_start)
