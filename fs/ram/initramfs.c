/*
 * Unpacks a cpio archive with everything that it may contain: directories, symbolic links, several
 * names of one file, devices, pipes, owners and times. The format is described in fs/cpio.c.
 *
 * Several names of one file are entries with the same inode number; any one of them
 * has the contents. An entry with a name that was there before takes its place, except that
 * directories stay: so archives can be put one after the other, as Linux allows.
 *
 * Files are made by the VFS's functions, as a program's calls would, with every check that those
 * make. One page is used for all paths and contents. It runs once, in the first task, and may
 * sleep.
 */
#include "fs/cpio.h"
#include "fs/path_page.h"
#include "fs/ram/ramfs.h"
#include "fs/vfs/path.h"
#include "fs/vfs/names.h"
#include "fs/vfs/vfs.h"

/* A file with several names that has been met. */
struct met {
	struct cpio_header header;
	struct inode *inode; /* a reference */
	struct met *next;
};

/* Most archives have few such files; so the list is searched from its beginning. */
static struct pool met_pool = POOL_INITIALIZER(struct met);

static struct met *all_met;

/* Makes the missing directories above the name, for archives that leave them out: each '/' ends the
 * name of one for a moment. What is there already stays as it is. */
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

/* By the file's number and the disk that it was on, which together are one file on the host. */
static struct met *find_met(const struct cpio_header *header)
{
	struct met *met = all_met;

	while (met && (met->header.inode != header->inode || met->header.major != header->major ||
		       met->header.minor != header->minor))
		met = met->next;
	return met;
}

/* Remembers a file that has more names, and holds it: another entry may take its only name so far.
 */
static int remember(const struct cpio_header *header, struct inode *inode)
{
	struct met *met = pool_alloc(&met_pool);

	if (!met)
		return -ENOMEM;
	*met = (struct met){ *header, inode_hold(inode), all_met };
	all_met = met;
	return 0;
}

/* The files live on by their names. The references that find_met needed go here. */
static void forget_all(void)
{
	while (all_met) {
		struct met *met = all_met;

		all_met = met->next;
		inode_put(met->inode);
		pool_free(&met_pool, met);
	}
}

/* Makes what the entry is: a directory, unless there is one; another name of `met`; or something
 * new. What had the name before is removed. A symbolic link's target is the contents. */
static int make_node(struct cpio *archive, const struct met *met, char *page)
{
	const struct cpio_header *header = &archive->header;
	uint32_t mode = header->mode & (S_IFMT | S_ALL);
	int error;

	if ((mode & S_IFMT) == S_IFDIR) {
		error = vfs_make(path_root(), archive->name, mode, 0);
		return error == -EEXIST ? 0 : error;
	}
	error = vfs_remove(path_root(), archive->name, false);
	if (error && error != -ENOENT)
		return error;
	if ((mode & S_IFMT) == S_IFLNK) {
		cpio_read(archive, page, header->size);
		page[header->size] = '\0';
		return vfs_symlink(path_root(), archive->name, page);
	}
	return met ? vfs_link(path_root(), archive->name, met->inode)
		   : vfs_make(path_root(), archive->name, mode,
			      header->device_major << 8 | header->device_minor);
}

/* Fills in the contents, and what the header tells. A file with several names may get its contents
 * with any of them, so what is there goes first; an entry without contents takes none away. */
static const char *fill_node(struct cpio *archive, struct inode *inode, char *page)
{
	const struct cpio_header *header = &archive->header;
	const char *wrong = NULL;
	struct file *file;

	if (inode_is(inode, S_IFREG) && header->size > 0) {
		int error = vfs_truncate(inode, 0) ?: vfs_open_inode(inode, O_WRONLY, &file);

		if (error)
			return errno_name(-error);
		wrong = copy_contents(archive, file, page);
		file_release(file);
	}
	inode->mode = (inode->mode & S_IFMT) | (header->mode & S_ALL);
	inode->owner = header->owner;
	inode->group = header->group;
	inode->modified = inode->accessed = header->time * 1000000000ull;
	return wrong;
}

/* What cannot be made of an entry, or NULL. */
static const char *entry_problem(const struct cpio *archive)
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

/* Owner, mode and times come last, because writing the contents changes the times. */
static const char *unpack_entry(struct cpio *archive, char *page)
{
	const struct cpio_header *header = &archive->header;
	bool has_names = (header->mode & S_IFMT) != S_IFDIR && header->links > 1;
	const struct met *met = has_names ? find_met(header) : NULL;
	struct inode *inode;
	int error = make_parents(archive) ?: make_node(archive, met, page)
		    ?: path_find(path_root(), archive->name, PATH_NAME, &inode);

	if (error)
		return errno_name(-error);
	error = has_names && !met ? remember(header, inode) : 0;
	const char *wrong = error ? errno_name(-error) : fill_node(archive, inode, page);

	inode_put(inode);
	return wrong;
}

/* A cpio_taker: what is wrong with the entry, which ends the unpacking with a message, or NULL. */
static const char *unpack_checked(struct cpio *archive)
{
	const char *wrong = entry_problem(archive);

	if (wrong)
		return wrong;
	char *page = path_page();

	wrong = page ? unpack_entry(archive, page) : errno_name(ENOMEM);
	path_page_free(page);
	return wrong;
}

/* After an error the files that came before it stay: fs/cpio.c has said where the archive is wrong.
 */
void initramfs_unpack(void)
{
	cpio_unpack(unpack_checked);
	forget_all();
}
