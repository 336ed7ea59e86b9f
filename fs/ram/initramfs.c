/*
 * Unpacks a cpio archive with everything that it may contain: directories, symbolic links, several
 * names of one file, devices, pipes, owners and times. The format is described in fs/cpio.c.
 *
 * Several names of one file are entries with the same inode number; any one of them
 * has the contents.
 */
#include "fs/ram/initramfs.h"

#include <stddef.h>

#include "fs/cpio.h"
#include "fs/file.h"
#include "fs/path_page.h"
#include "fs/vfs/path.h"
#include "fs/vfs/names.h"
#include "fs/vfs/vfs.h"
#include "kernel/lib/errno.h"
#include "mm/pool.h"
#include "kernel/lib/string.h"
#include "mm/page_alloc.h"

/* A file with several names that has been met. */
struct met {
	struct cpio_header header;
	struct inode *inode; /* a reference */
	struct met *next;
};

static struct pool met_pool = POOL_INITIALIZER(struct met);

static struct met *all_met;

/* The name of an error, as what is wrong; NULL for 0. */
static const char *cause(int error)
{
	return error ? errno_name(-error) : NULL;
}

/* Makes the missing directories above the name. */
static int make_parents(struct cpio *archive)
{
	for (char *at = archive->name; *at; at++) {
		if (*at != '/' || at == archive->name)
			continue;
		*at = '\0';
		int error = vfs_make(path_root(), archive->name, S_IFDIR | 0755, 0);

		*at = '/';
		if (error && error != -EEXIST)
			return error;
	}
	return 0;
}

/* Copies the contents of an entry into a file. `page` is one. */
static const char *copy_contents(struct cpio *archive, struct file *file, char *page)
{
	uint32_t left = archive->header.size;

	while (left > 0) {
		uint32_t chunk = left < PAGE_SIZE ? left : PAGE_SIZE;
		struct buffer buffer = buffer_of_kernel(page, chunk);

		cpio_read(archive, page, chunk);
		if (file_write(file, &buffer) < 0 || buffer.length > 0)
			return "no room for the contents; more memory may help";
		left -= chunk;
	}
	return NULL;
}

static struct met *find_met(const struct cpio_header *header)
{
	struct met *met = all_met;

	while (met && (met->header.inode != header->inode || met->header.major != header->major ||
		       met->header.minor != header->minor))
		met = met->next;
	return met;
}

/* Remembers a file that has more names. */
static int remember(struct cpio *archive, struct inode *inode)
{
	struct met *met = pool_alloc(&met_pool);

	if (!met)
		return -ENOMEM;
	met->header = archive->header;
	met->inode = inode_hold(inode);
	met->next = all_met;
	all_met = met;
	return 0;
}

static void forget_all(void)
{
	while (all_met) {
		struct met *met = all_met;

		all_met = met->next;
		inode_put(met->inode);
		pool_free(&met_pool, met);
	}
}

/* Makes the file, or another name of one that was met. A file that had the name before is removed.
 */
static int make_regular(struct cpio *archive)
{
	const struct cpio_header *header = &archive->header;
	bool has_names = header->links > 1;
	struct met *met = has_names ? find_met(header) : NULL;
	int error = vfs_remove(path_root(), archive->name, false);

	if (error && error != -ENOENT)
		return error;
	if (met)
		return vfs_link(path_root(), archive->name, met->inode);
	error = vfs_make(path_root(), archive->name, header->mode & (S_IFMT | S_ALL),
			 header->device_major << 8 | header->device_minor);
	if (error || !has_names)
		return error;
	struct inode *inode;

	error = path_find(path_root(), archive->name, PATH_NAME, &inode);
	if (error)
		return error;
	error = remember(archive, inode);
	inode_put(inode);
	return error;
}

static int make_directory(struct cpio *archive)
{
	int error =
	    vfs_make(path_root(), archive->name, S_IFDIR | (archive->header.mode & S_ALL), 0);

	return error == -EEXIST ? 0 : error;
}

/* The target is the contents. */
static int make_link(struct cpio *archive, char *page)
{
	uint32_t length = archive->header.size;

	cpio_read(archive, page, length);
	page[length] = '\0';
	int error = vfs_remove(path_root(), archive->name, false);

	if (error && error != -ENOENT)
		return error;
	return vfs_symlink(path_root(), archive->name, page);
}

/* Fills in what the header tells, and the contents. */
static const char *complete(struct cpio *archive, char *page)
{
	const struct cpio_header *header = &archive->header;
	const char *wrong = NULL;
	struct inode *inode;
	struct file *file;
	int error = path_find(path_root(), archive->name, PATH_NAME, &inode);

	if (error)
		return cause(error);
	if (inode_is(inode, S_IFREG) && header->size > 0) {
		error = vfs_truncate(inode, 0);
		if (!error)
			error = vfs_open_inode(inode, O_WRONLY, &file);
		if (!error) {
			wrong = copy_contents(archive, file, page);
			file_release(file);
		}
	}
	inode->mode = (inode->mode & S_IFMT) | (header->mode & S_ALL);
	inode->owner = header->owner;
	inode->group = header->group;
	inode->modified = inode->accessed = header->time * 1000000000ull;
	inode_put(inode);
	return error ? cause(error) : wrong;
}

static int make(struct cpio *archive, char *page)
{
	switch (archive->header.mode & S_IFMT) {
	case S_IFDIR:
		return make_directory(archive);
	case S_IFLNK:
		return make_link(archive, page);
	default:
		return make_regular(archive);
	}
}

/* What cannot be made of an entry, or NULL. */
static const char *check(const struct cpio *archive)
{
	uint32_t size = archive->header.size;

	switch (archive->header.mode & S_IFMT) {
	case S_IFREG:
		return NULL;
	case S_IFLNK:
		return size > 0 && size < PATH_MAX ? NULL
						   : "a symbolic link to nowhere, or too far";
	case S_IFDIR:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
		return size == 0 ? NULL : "contents where there can be none";
	}
	return "a file of unknown type";
}

static const char *take(struct cpio *archive)
{
	const char *wrong = check(archive);

	if (wrong)
		return wrong;
	char *page = path_page();
	int error = page ? make_parents(archive) : -ENOMEM;

	if (!error)
		error = make(archive, page);
	wrong = error ? cause(error) : complete(archive, page);
	path_page_free(page);
	return wrong;
}

void initramfs_unpack(void)
{
	cpio_unpack(take);
	forget_all();
}
